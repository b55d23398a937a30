// Record events and deliver them under the user's token.
import Countersign
import Foundation

// snippet.show
/// Asks your backend for a token that it signs for this user; here it is what `countersign token create` printed.
func signedToken(for userID: String) async throws -> String {
    ProcessInfo.processInfo.environment["TOKEN"] ?? ""
}

func recordAnOrder(endpoint: URL, writeKey: String) async throws {
    var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
    // Asked when there is no token, when it expires, and when the gateway refuses it.
    configuration.tokenProvider = { request in try await signedToken(for: request.userID) }
    let client = try CountersignClient(configuration: configuration)

    client.identify(userID: "user-1")
    client.track("Order Completed", properties: ["total": 42.5])  // returns at once
    let result = await client.flush()
    print("delivered \(result.delivered), still queued \(result.queued)")
}
// snippet.hide

if let endpoint = URL(string: "http://127.0.0.1:8787"),
    let writeKey = ProcessInfo.processInfo.environment["WRITE_KEY"]
{
    try await recordAnOrder(endpoint: endpoint, writeKey: writeKey)
}
