package import CountersignCore
import CountersignDelivery
package import CountersignLocations
package import CountersignTesting
package import CountersignTransport
package import Foundation
import TestSupport

/// A `LocationClient` on a directory of its own, with a location server and a token server in memory.
package final class LocationBench: Sendable {
    package struct Upload: Sendable {
        package let request: TransportRequest
        package let token: String?
        package let body: JSONValue
    }

    private let folder = TemporaryFolder()
    package var directory: URL { folder.url }
    package let clock = ManualClock()
    package let tokens = TokenServer()
    package let transport: ScriptedTransport
    package let uploads = Lock([Upload]())
    package let stored = Lock([String]())
    package let response = Lock<(@Sendable (Upload) -> TransportResponse?)?>(nil)
    package let authorization = Lock([AuthorizationEvent]())
    package let http = Lock([UploadEvent]())
    package let locations = Lock([String]())
    package let lines = Lock([String]())

    package init() {
        transport = ScriptedTransport { _ in throw CancellationError() }
        transport.setHandler { [weak self] request in
            guard let self else { throw CancellationError() }
            return answer(request)
        }
    }

    /// A configuration with the addresses of Transistorsoft's documentation.
    package var configuration: LocationConfiguration {
        var configuration = LocationConfiguration()
        configuration.http.url = "https://app.your.server.com/users/locations"
        configuration.http.autoSync = false
        configuration.authorization.strategy = "JWT"
        configuration.authorization.accessToken = "A0"
        configuration.authorization.refreshToken = "R0"
        configuration.authorization.refreshUrl = "https://auth.your.server.com/tokens"
        configuration.authorization.refreshPayload = ["refresh_token": "{refreshToken}"]
        configuration.dataDirectory = directory
        configuration.context.parts = []
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
    package func make(
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
        if let answer = response.withLock({ $0 })?(upload) { return answer }
        stored.withLock { $0.append(contentsOf: upload.uuids) }
        return .json(200, #"{"success":true}"#)
    }

    package var refreshes: Int { transport.requests.count { $0.url.host == "auth.your.server.com" } }
}

extension LocationBench.Upload {
    package var uuids: [String] {
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
