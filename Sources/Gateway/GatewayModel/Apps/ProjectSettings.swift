internal import CountersignCore
internal import Foundation

/// Whether customer tokens open the App Inbox of a project.
package enum CustomerTokens: String, Sendable, TextEnum {
    /// Only the project's API key opens the App Inbox; customer tokens are rejected.
    case off
    /// The API key and customer tokens open the App Inbox. For migrations, while old app versions send the key.
    case allowed
    /// Only customer tokens open the App Inbox.
    case required
}

/// How clients of the Bloomreach dialect reach an app, and where push notifications are delivered.
package struct ProjectSettings: Sendable, Equatable {
    /// The project token in paths. The default is the app's id. Operators set another token if shipped apps contain it:
    /// 1 to 64 letters, digits and `-`, not beginning with `-`.
    package var token: String
    package var customerTokens = CustomerTokens.off
    /// Receives requests to send a test push notification; nil rejects such requests of clients.
    package var webhook: PushWebhook?
    package var inboxEpoch: Int64 = 1
}

extension ProjectSettings: AppSetting {
    package static let settingName = "project"

    package static func standard(for appID: String) -> ProjectSettings { ProjectSettings(token: appID) }

    package static let fields: [JSONField<ProjectSettings>] = [
        .text("token", \.token, longest: 64),
        .choice("customer_tokens", \.customerTokens, unreadable: .required),
        .part("webhook", \.webhook, standard: PushWebhook.standard(for: "")),
        .own("inbox_epoch", \.inboxEpoch),
    ]

    package func check() throws(GatewayError) {
        do throws(GatewayError) {
            try webhook?.check()
        } catch {
            throw GatewayError(error.code, error.reason, member: "webhook." + (error.member ?? ""))
        }
    }
}

extension PushWebhook {
    /// Without `secret`, uses `key`. Throws `invalid` if the secret is malformed.
    package init(
        url: String, secret: String?, keeping key: [UInt8] = [], allowsPrivateAddresses: Bool
    ) throws(GatewayError) {
        guard let key = secret.map(WebhookSignature.key) ?? key else {
            throw GatewayError(.invalid, "a webhook's secret must be whsec_ and the base64 of 24 to 64 bytes")
        }
        self.init(url: url, secret: key, allowsPrivateAddresses: allowsPrivateAddresses)
    }

    package static func newSecret() -> String {
        WebhookSignature.prefix + Data([UInt8].random(count: 32)).base64EncodedString()
    }
}
