/// Where requests for a push notification go.
package struct PushWebhook: Sendable, Equatable {
    package let url: String
    /// The key that deliveries are signed with; written `whsec_` and base64.
    package var secret: [UInt8]
    /// True when the address may be one of a private network, or of this machine.
    package let allowsPrivateAddresses: Bool

    /// The URL, if its address may be private.
    package var privateURL: String? { allowsPrivateAddresses ? url : nil }
}
