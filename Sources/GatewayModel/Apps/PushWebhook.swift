internal import CountersignCore

/// Where requests for a push notification go, or alerts of an app's enforcement.
package struct PushWebhook: Sendable, Equatable {
    package var url: String
    /// The key that deliveries are signed with; written `whsec_` and base64.
    package var secret: [UInt8]
    /// True when the address may be one of a private network, or of this machine.
    package var allowsPrivateAddresses: Bool

    package init(url: String, secret: [UInt8], allowsPrivateAddresses: Bool) {
        self.url = url
        self.secret = secret
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    /// The URL, if its address may be private.
    package var privateURL: String? { allowsPrivateAddresses ? url : nil }
}

/// As a setting, where alerts go: that an app refuses many requests, or has returned automatically.
extension PushWebhook: AppSetting {
    package static let settingName = "webhook"
    package static let mayBeMissing = true

    package static func standard(for appID: String) -> PushWebhook {
        PushWebhook(url: "", secret: [], allowsPrivateAddresses: false)
    }

    package static let fields: [JSONField<PushWebhook>] = [
        .url("url", \.url), .bool("allow_private", \.allowsPrivateAddresses),
        .secret("secret", taken: .may("secret", .text(longest: 200)), \.secret),
    ]

    package func check() throws(GatewayError) {
        try OutgoingURL.check(url, allowsPrivateAddresses: allowsPrivateAddresses, takesPlainHTTP: true)
    }
}
