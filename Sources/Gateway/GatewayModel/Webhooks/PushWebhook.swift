internal import CountersignCore

/// A webhook for an app's push notifications or alerts.
package struct PushWebhook: Sendable, Equatable {
    package var url: String
    /// The key that signs deliveries; operators write it as `whsec_` and base64.
    package var secret: [UInt8]
    /// Whether the URL may resolve to an address of a private network or of this machine.
    package var allowsPrivateAddresses: Bool

    package init(url: String, secret: [UInt8], allowsPrivateAddresses: Bool) {
        self.url = url
        self.secret = secret
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    package var privateURL: String? { allowsPrivateAddresses ? url : nil }
}

/// As a setting of an app, a webhook that receives alerts about enforcement, webhooks, streams and consumers.
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
