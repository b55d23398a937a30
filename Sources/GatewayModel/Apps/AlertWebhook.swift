internal import CountersignCore
internal import Foundation

/// Where a gateway tells of an app's enforcement: that it refuses many requests, or has returned by itself.
package struct AlertWebhook: Sendable, Equatable {
    package var url: String
    /// The key that deliveries are signed with.
    package var secret: [UInt8] = []
    /// True when the address may be one of a private network, or of this machine.
    package var allowsPrivateAddresses = false

    package init(url: String, secret: [UInt8] = [], allowsPrivateAddresses: Bool = false) {
        self.url = url
        self.secret = secret
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }

    package var target: PushWebhook {
        PushWebhook(url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
    }
}

extension AlertWebhook: AppSetting {
    package static let settingName = "webhook"
    package static let mayBeMissing = true

    package static func standard(for appID: String) -> AlertWebhook { AlertWebhook(url: "") }

    package static let fields: [SettingField<AlertWebhook>] = [
        .text("url", \.url, longest: 2_048), .secret("secret", \.secret),
        .bool("allow_private", \.allowsPrivateAddresses),
    ]

    package func check() throws(GatewayError) {
        let own = ["localhost", "127.0.0.1", "::1", "[::1]"]
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
            parts.scheme == "https"
                || (parts.scheme == "http" && own.contains(host) && allowsPrivateAddresses),
            parts.user == nil, parts.password == nil
        else {
            throw GatewayError(
                .invalid,
                "url begins with https:// and has no user name in it; http:// only to this machine, with allow_private"
            )
        }
    }
}
