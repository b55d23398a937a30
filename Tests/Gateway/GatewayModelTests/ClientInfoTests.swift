import Testing

@testable import GatewayModel

/// The client's software in a `User-Agent`.
struct ClientInfoTests {
    @Test(arguments: [
        ("countersign-swift/1.0.0 app/2.1", "countersign-swift 1.0.0", "2.1"),
        ("countersign-swift/1.0.0", "countersign-swift 1.0.0", nil),
        ("Shop/7 CFNetwork/1 Darwin/2", "Shop 7", nil), ("x/1 app/", "x 1", nil),
        ("x/1 app/2 more", "x 1", "2"), ("x/1 app/" + String(repeating: "9", count: 65), "x 1", nil),
    ])
    func theUserAgentNamesTheSDKAndThenTheApp(text: String, sdk: String, version: String?) {
        let client = Array(text.utf8).withUnsafeBufferPointer { ClientInfo(userAgent: $0) }
        #expect(client == ClientInfo(sdk: sdk, appVersion: version))
    }
}
