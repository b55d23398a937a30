internal import CountersignCore

/// A column with secrets that the gateway needs in plain text. An engine may encrypt them, so that a copy of the
/// database alone does not reveal them.
package struct SecretColumn: Sendable {
    package let table: String
    package let column: String
    package let key: [String]

    package var isText: Bool { column == "body" }

    /// Keys that sign customer tokens with HS256.
    static let customerTokenKey = SecretColumn(
        table: "customer_token_key", column: "secret", key: ["app_id", "id"])
    static let secondFactor = SecretColumn(table: "admin_second_factor", column: "secret", key: ["user"])
    /// The complete JSON of a webhook, because its URL may contain a secret too.
    static let webhook = SecretColumn(table: "webhook_endpoint", column: "body", key: ["id"])
    /// The complete JSON of each setting in ``settings``.
    package static let setting = SecretColumn(table: "app_setting", column: "body", key: ["app_id", "name"])
    static let pseudonymKey = SecretColumn(table: "pseudonym_key", column: "key", key: ["id"])

    package static let all = [customerTokenKey, secondFactor, webhook, setting, pseudonymKey]

    /// The names of settings with secrets: the alert webhook and the project with its push webhook.
    package static let settings = ["project", "webhook"]

    /// Whether the row with this key holds a secret.
    package func isSecret(_ key: [String]) -> Bool {
        table != Self.setting.table || key.last.map { Self.settings.contains($0) } == true
    }
}
