// Record events and deliver them with the user's token.
import Countersign
import Foundation

/// Replace the body with a request to your backend. For a trial, set TOKEN to the output of `countersign token create`.
func signedToken(for userID: String) async throws -> String {
    ProcessInfo.processInfo.environment["TOKEN"] ?? ""
}

guard let endpoint = URL(string: "http://127.0.0.1:8787"),
    let writeKey = ProcessInfo.processInfo.environment["WRITE_KEY"]
else { fatalError("Set WRITE_KEY to the write key of an app.") }

// snippet.show
var configuration = CountersignConfiguration(endpoint: endpoint, writeKey: writeKey)
// Called when there is no token, when it expires, and when the gateway rejects it.
configuration.tokenProvider = { request in try await signedToken(for: request.userID) }
let client = try CountersignClient(configuration: configuration)

client.identify(userID: "user-1")
client.track("Order Completed", properties: ["total": 42.5])  // returns at once
let result = await client.flush()
print(result)  // such as: delivered 0, still queued 2 (parked: MISSING_TOKEN)
// snippet.hide
