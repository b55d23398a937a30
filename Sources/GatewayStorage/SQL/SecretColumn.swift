internal import CountersignCore

/// A column of what operators keep secret with a gateway and it needs as it is, because it computes with it. An engine may keep
/// such values sealed, so that whoever has a copy of the database alone cannot use them.
package struct SecretColumn: Sendable {
    package let table: String
    package let column: String
    /// The columns that name a row.
    package let key: [String]

    /// Whether the column holds text, and not bytes.
    package var isText: Bool { column == "body" }

    /// Private keys that sign customers' tokens with HS256.
    static let customerTokenKey = SecretColumn(
        table: "customer_token_key", column: "secret", key: ["app_id", "id"])
    /// What the passwords of operators' authenticator apps are computed from.
    static let secondFactor = SecretColumn(table: "admin_second_factor", column: "secret", key: ["user"])
    /// Webhooks, whole: a URL may be a secret too.
    static let webhook = SecretColumn(table: "webhook_endpoint", column: "body", key: ["id"])
    /// Those of ``settings``, whole.
    package static let setting = SecretColumn(table: "app_setting", column: "body", key: ["app_id", "name"])
    /// What users' pseudonyms are made with.
    static let pseudonymKey = SecretColumn(table: "pseudonym_key", column: "key", key: ["id"])

    package static let all = [customerTokenKey, secondFactor, webhook, setting, pseudonymKey]

    /// The settings that have secrets, by their names: where alerts go, and where a project's pushes go.
    package static let settings = ["project", "webhook"]

    /// Whether the row of this key holds a secret.
    package func isSecret(_ key: [String]) -> Bool {
        table != Self.setting.table || key.last.map { Self.settings.contains($0) } == true
    }
}
