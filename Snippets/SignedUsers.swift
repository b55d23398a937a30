// Pass a user's tokens to the SDK, and handle rejected tokens.
import Countersign
import Foundation

/// Your backend, which signs tokens for signed-in users.
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

/// Properties can be numbers, optionals and the app's own types, without conversion.
struct Item: Encodable, Sendable {
    var name: String
    var price: Double
}

func order(client: CountersignClient, total: Double, coupon: String?, items: [Item]) {
    client.track("Order Completed", properties: ["total": total, "coupon": coupon, "items": items])
}

func recordFromADictionary(client: CountersignClient, properties: [String: Any]) async throws {
    try await client.record("Order Completed", properties: properties)
}

func signIn(client: CountersignClient, name: String) {
    // The SDK keeps the user when the app starts again, until `logOut()`.
    if client.userID == nil { client.identify(userID: "user-1", traits: ["name": name]) }
}

func send(client: CountersignClient) async {
    if await client.flush().ending == .waitingForTokenProvider { print("the provider has not returned yet") }
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

func inspect(client: CountersignClient) async {
    let snapshot = await client.snapshot()
    for parked in snapshot.parked { print(parked) }
}
