import Countersign
import CountersignTransport
import Foundation

/// The app's only SDK client.
struct Analytics: Sendable {
    let client: CountersignClient

    /// - Parameters:
    ///   - endpoint: The gateway.
    ///   - writeKey: The app's write key.
    ///   - token: Requests a token of the signed-in user from your backend.
    /// - Throws: `CountersignError` if the write key or the endpoint is invalid.
    init(
        endpoint: URL, writeKey: String, token: @escaping @Sendable (_ userID: String) async throws -> String
    )
        throws
    {
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
        configuration.tokenProvider = { request in try await token(request.userID) }
        client = try CountersignClient(configuration: configuration)
        // For your error reporting, without the token.
        client.onAuthenticationFailure { failure in
            print("token rejected:", failure.code.rawValue, failure.reason, "times:", failure.occurrences)
        }
    }

    private init(client: CountersignClient) { self.client = client }

    func logIn(_ userID: String) { client.identify(userID: userID) }

    func logOut() async { _ = await client.logOut() }

    func noteAdded(length: Int) {
        client.track("Note Added", properties: ["length": .integer(Int64(length))])
    }
}

#if DEBUG
    extension Analytics {
        /// For previews: a server in memory that accepts every event.
        static func inMemory() -> Analytics? {
            struct Server: HTTPTransport {
                struct Body: Decodable {
                    struct Event: Decodable {}
                    let batch: [Event]
                }

                func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
                    let body = try? JSONDecoder().decode(Body.self, from: Data(request.body))
                    let answer = #"{"success":true,"accepted":\#(body?.batch.count ?? 0)}"#
                    return TransportResponse(status: 200, body: Array(answer.utf8))
                }
            }
            guard let nowhere = URL(string: "https://preview.invalid") else { return nil }
            var configuration = CountersignConfiguration(endpoint: nowhere, writeKey: "preview")
            // A separate queue, so that a preview does not send the app's events.
            configuration.dataDirectory = FileManager.default.temporaryDirectory.appendingPathComponent(
                UUID().uuidString)
            guard let client = try? CountersignClient(configuration: configuration, transport: Server())
            else { return nil }
            return Analytics(client: client)
        }
    }
#endif
