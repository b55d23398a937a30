// Hand over a user's tokens, and hear of those that were refused.
import Countersign
import Foundation

/// Your backend, which knows who is logged in.
struct Backend: Sendable {
    func token(for userID: String) async throws -> String { "" }
    func newToken() async throws -> String { "" }
}

func push(url: URL, tokenFromBackend: String) async throws {
    let client = try CountersignClient(
        configuration: CountersignConfiguration(endpoint: url, writeKey: "wk_…"))
    client.identify(userID: "user-1", token: tokenFromBackend)
    client.track("Order Completed", properties: ["total": 42.5])
    let result = await client.flush()
    print(result.delivered)
}

func replace(client: CountersignClient, token: String, newToken: String) {
    client.identify(userID: "user-1", token: token)
    client.setToken(newToken)
}

func listen(client: CountersignClient, backend: Backend) async throws {
    for await failure in client.authenticationFailures {
        guard failure.userID == client.userID, !failure.isOptional else { continue }
        client.setToken(try await backend.newToken())
    }
}

func pull(configuration: inout CountersignConfiguration, backend: Backend) {
    configuration.tokenProvider = { request in try await backend.token(for: request.userID) }
}

func report(client: CountersignClient) async {
    for await failure in client.authenticationFailures {
        print(failure.code.rawValue, failure.reason, failure.code.fix)
        if let skew = failure.clockSkew { print("this device's clock is off by \(skew) s") }
    }
}

func look(client: CountersignClient) async {
    let snapshot = await client.snapshot()
    for parked in snapshot.parked { print(parked) }
}
