internal import CountersignCore
internal import Foundation

/// Where a gateway tells of an app's enforcement: that it refuses many requests, or has returned by itself.
struct AlertWebhook: Sendable, Equatable {
    var url: String
    /// The key that deliveries are signed with.
    var secret: [UInt8] = []
    /// True when the address may be one of a private network, or of this machine.
    var allowsPrivateAddresses = false

    var target: PushWebhook {
        PushWebhook(url: url, secret: secret, allowsPrivateAddresses: allowsPrivateAddresses)
    }
}

extension AlertWebhook: AppSetting {
    static let settingName = "webhook"
    static let mayBeMissing = true

    static func standard(for appID: String) -> AlertWebhook { AlertWebhook(url: "") }

    static let fields: [SettingField<AlertWebhook>] = [
        .text("url", \.url, longest: 2_048), .secret("secret", \.secret),
        .bool("allow_private", \.allowsPrivateAddresses),
    ]

    func check() throws(GatewayError) {
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
