internal import CountersignLocations
internal import CountersignTransport
internal import Foundation

/// A device whose access tokens live for seconds: records locations four times a second, uploads and refreshes.
///
/// Arguments: directory, endpoint, file with the access and refresh token of the registration, journal, `run` or `drain`.
struct TokenDevice {
    let configuration: LocationConfiguration
    let journal: Journal
    let isDraining: Bool

    init(arguments: [String]) throws {
        guard arguments.count == 5 else { throw TortureError("token-device needs 5 arguments") }
        let pair = try String(contentsOfFile: arguments[2], encoding: .utf8).split(separator: " ")
        guard pair.count == 2 else { throw TortureError("the file does not have two tokens") }
        var configuration = LocationConfiguration()
        configuration.http.url = arguments[1] + "/api/locations"
        configuration.http.batchSync = true
        configuration.authorization.accessToken = String(pair[0])
        configuration.authorization.refreshToken = String(pair[1])
        configuration.authorization.refreshUrl = arguments[1] + "/api/refresh_token"
        configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
        configuration.dataDirectory = URL(fileURLWithPath: arguments[0])
        configuration.networkRetry = RetryPolicy(baseDelay: 0.1, maximumDelay: 1, maximumServerDelay: 1)
        self.configuration = configuration
        journal = try Journal(path: arguments[3])
        isDraining = arguments[4] == "drain"
    }

    func run() async throws {
        let client = try LocationClient(
            configuration: configuration,
            transport: LossyTransport(journal: journal, losses: isDraining ? 0 : 0.05))
        print("go")
        fflush(nil)
        if isDraining {
            for _ in 0..<300 {
                _ = try? await client.sync()
                if try await client.count() == 0 { break }
                try await Task.sleep(nanoseconds: 100_000_000)
            }
            guard try await client.count() == 0 else {
                throw TortureError("\(await client.authorizationState)")
            }
            return await client.close()
        }
        while true {
            let uuid = try await client.record(Location(latitude: 46, longitude: 14, timestamp: Date()))
            journal.write("stored \(uuid)")
            if await client.authorizationState.kind == .reauthenticationRequired { journal.write("login -") }
            try await Task.sleep(nanoseconds: 250_000_000)
        }
    }
}

/// Loses a share of the token server's responses: half by a connection error, half by a kill of the process before
/// the process stores the response.
private final class LossyTransport: HTTPTransport {
    private let uploads = CurlTransport()
    private let refreshes = CurlTransport()
    private let losses: Double
    private let report: @Sendable (String) -> Void

    init(journal: Journal, losses: Double) {
        self.losses = losses
        report = { journal.write($0) }
    }

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        guard request.url.path.hasSuffix("refresh_token") else { return try await uploads.send(request) }
        report("refresh -")
        let response = try await refreshes.send(request)
        if response.status != 200 { report("refused \(response.status)") }
        switch Double.random(in: 0..<1) {
        case ..<(losses / 2):
            report("lost -")
            throw HTTPTransportError(.connectionLost, "injected")
        case ..<losses:
            report("lost -")
            kill(getpid(), SIGKILL)
            throw HTTPTransportError(.connectionLost, "injected")
        default: return response
        }
    }
}
