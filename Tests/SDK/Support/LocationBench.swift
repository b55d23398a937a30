import CountersignCore
import CountersignTesting
import Foundation

@testable import CountersignDelivery
@testable import CountersignLocations
@testable import CountersignTransport

/// A `LocationClient` on a directory of its own, with a location server and a token server in memory.
final class LocationBench: Sendable {
    struct Upload: Sendable {
        let request: TransportRequest
        let token: String?
        let body: JSONValue
    }

    private let folder = TemporaryFolder()
    var directory: URL { folder.url }
    let clock = ManualClock()
    let tokens = TokenServer()
    let transport: ScriptedTransport
    let uploads = Lock([Upload]())
    let stored = Lock([String]())
    let judge = Lock<(@Sendable (Upload) -> TransportResponse?)?>(nil)
    let authorization = Lock([AuthorizationEvent]())
    let http = Lock([UploadEvent]())
    let locations = Lock([String]())
    let lines = Lock([String]())

    init() {
        transport = ScriptedTransport { _ in throw CancellationError() }
        transport.setHandler { [weak self] request in
            guard let self else { throw CancellationError() }
            return answer(request)
        }
    }

    /// The configuration of Transistorsoft's documentation, with its own names.
    var configuration: LocationConfiguration {
        var configuration = LocationConfiguration()
        configuration.http.url = "https://app.your.server.com/users/locations"
        configuration.http.autoSync = false
        configuration.authorization.strategy = "JWT"
        configuration.authorization.accessToken = "A0"
        configuration.authorization.refreshToken = "R0"
        configuration.authorization.refreshUrl = "https://auth.your.server.com/tokens"
        configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
        configuration.dataDirectory = directory
        configuration.onAuthorization = { [authorization] event in
            authorization.withLock { $0.append(event) }
        }
        configuration.onHTTP = { [http] event in http.withLock { $0.append(event) } }
        configuration.onLocation = { [locations] record in
            if case .string(let uuid) = record["uuid"] { locations.withLock { $0.append(uuid) } }
        }
        configuration.log = CountersignLog(isEnabled: { _ in true }) { [lines] _, text, values in
            lines.withLock { $0.append("\(text) \(values)") }
        }
        return configuration
    }

    /// A client that is closed after the test.
    func make(
        keepsTokens: Bool = false, _ change: (inout LocationConfiguration) -> Void = { _ in }
    ) throws -> LocationClient {
        var configuration = configuration
        change(&configuration)
        let client = try LocationClient(
            configuration: configuration, keepsTokens: keepsTokens, transport: transport, clock: clock,
            random: { 1 })
        Closing.afterTest { [folder] in
            await client.close()
            withExtendedLifetime(folder) {}
        }
        return client
    }

    private func answer(_ request: TransportRequest) -> TransportResponse {
        if request.url.host == "auth.your.server.com" { return tokens.answer(request) }
        let upload = Upload(
            request: request, token: request.header("Authorization"),
            body: JSONDocument.value(request.body) ?? .null)
        uploads.withLock { $0.append(upload) }
        if let answer = judge.withLock({ $0 })?(upload) { return answer }
        stored.withLock { $0.append(contentsOf: upload.uuids) }
        return .json(200, #"{"success":true}"#)
    }

    var refreshes: Int { transport.requests.count { $0.url.host == "auth.your.server.com" } }
}

extension LocationBench.Upload {
    var uuids: [String] {
        guard case .object(let root) = body, let location = root["location"] else { return [] }
        let records: [JSONValue] = if case .array(let elements) = location { elements } else { [location] }
        return records.compactMap { record in
            guard case .object(let members) = record, case .string(let uuid) = members["uuid"] else {
                return nil
            }
            return uuid
        }
    }
}
