import Countersign
import Foundation

/// The one client of the app.
struct Analytics: Sendable {
    let client: CountersignClient

    /// - Parameters:
    ///   - endpoint: The gateway.
    ///   - writeKey: The app's write key.
    ///   - token: Asks your backend for a token of the user who is logged in.
    /// - Throws: `CountersignError` if the write key or the endpoint cannot work.
    init(
        endpoint: URL, writeKey: String, token: @escaping @Sendable (_ userID: String) async throws -> String
    )
        throws
    {
        var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
        configuration.tokenProvider = { request in try await token(request.userID) }
        client = try CountersignClient(configuration: configuration)
        // For your error reporting. The token itself is never in it.
        client.onAuthenticationFailure { failure in
            print("token refused:", failure.code.rawValue, failure.reason, "times:", failure.occurrences)
        }
    }

    func logIn(_ userID: String) { client.identify(userID: userID) }

    func logOut() async { _ = await client.logOut() }

    func noteAdded(length: Int) {
        client.track("Note Added", properties: ["length": .integer(Int64(length))])
    }
}
