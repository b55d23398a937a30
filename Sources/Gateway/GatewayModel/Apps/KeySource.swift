internal import CountersignCore

/// The URL at which an app's keys are published as a JWK Set (RFC 7517, section 5).
package struct KeySource: Sendable, Equatable {
    /// An `https` URL.
    package var url: String
    /// Whether the URL may resolve to an address of a private network or of this machine.
    package var allowsPrivateAddresses: Bool

    package init(url: String, allowsPrivateAddresses: Bool) {
        self.url = url
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    /// The URL, if private addresses are allowed.
    package var privateURL: String? { allowsPrivateAddresses ? url : nil }
}

extension KeySource: AppSetting {
    package static let settingName = "key_source"
    package static let mayBeMissing = true

    package static func standard(for appID: String) -> KeySource {
        KeySource(url: "", allowsPrivateAddresses: false)
    }

    package static let fields: [JSONField<KeySource>] = [
        .url("url", \.url), .bool("allow_private", \.allowsPrivateAddresses),
    ]

    package func check() throws(GatewayError) {
        try OutgoingURL.check(url, allowsPrivateAddresses: allowsPrivateAddresses, takesPlainHTTP: false)
    }
}
