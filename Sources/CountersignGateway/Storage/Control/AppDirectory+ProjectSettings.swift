internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// How clients of the Bloomreach dialect reach an app, and where its pushes go.
package struct ProjectSettings: Sendable, Equatable {
    /// What stands for the app in paths, where shipped apps have another token built in: 1 to 64 letters, digits
    /// and `-`, or the app's id.
    package var token: String
    package var customerTokens: CustomerTokens
    /// Nil refuses requests for a push notification.
    package var webhook: PushWebhook?
}

extension AppDirectory {
    /// Changes how clients of the Bloomreach dialect reach an app, all or nothing.
    ///
    /// - Throws: `invalid`, `conflict` when another app has the token, `notFound`, `storage`, and what `change` throws.
    package func changeProject(
        of appID: String, _ change: (inout ProjectSettings) throws -> Void
    ) throws(GatewayError) {
        try write { sqlite in
            guard let project = try ProjectReader(sqlite: sqlite).projects(of: appID)[appID] else {
                throw Self.noApp(appID)
            }
            let before = project.settings
            var after = before
            try change(&after)
            if before == after { return }
            try Self.check(after.token, of: appID, sqlite)
            try sqlite.run("INSERT INTO project (app_id) VALUES (?1) ON CONFLICT DO NOTHING", .text(appID))
            try sqlite.run(
                "UPDATE project SET token = ?2, customer_tokens = ?3 WHERE app_id = ?1", .text(appID),
                .text(after.token), .text(after.customerTokens.rawValue))
            try sqlite.run("DELETE FROM push_webhook WHERE app_id = ?", .text(appID))
            if let webhook = after.webhook {
                try sqlite.run(
                    "INSERT INTO push_webhook VALUES (?1, ?2, ?3, ?4)", .text(appID), .text(webhook.url),
                    .blob(webhook.secret), .integer(webhook.allowsPrivateAddresses ? 1 : 0))
            }
            try audit(sqlite, "project.set", appID, app: appID, before: before.json, after: after.json)
        }
    }

    private static func check(_ token: String, of appID: String, _ sqlite: SQLiteConnection) throws {
        let isAllowed = token.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        // An app's own id is its first token, which may have a `_`.
        guard token == appID || (isAllowed && (1...64).contains(token.utf8.count)) else {
            throw GatewayError(.invalid, "a project token has 1 to 64 letters, digits and -")
        }
        let taken = try sqlite.first(
            """
            SELECT 1 FROM app LEFT JOIN project ON project.app_id = app.id
            WHERE app.id <> ?1 AND coalesce(project.token, app.id) = ?2
            """, .text(appID), .text(token)
        ) { _ in true }
        guard taken == nil else {
            throw GatewayError(.conflict, "another app has the project token \(token); choose another")
        }
    }
}

extension Project {
    var settings: ProjectSettings {
        ProjectSettings(token: token, customerTokens: customerTokens, webhook: webhook)
    }
}

extension ProjectSettings {
    /// The settings as the audit log and the admin API have them.
    var json: JSONValue {
        [
            "token": .string(token), "customer_tokens": .string(customerTokens.rawValue),
            "webhook": webhook.map {
                ["url": .string($0.url), "allow_private": .bool($0.allowsPrivateAddresses)]
            } ?? .null,
        ]
    }
}

extension PushWebhook {
    /// - Parameters:
    ///   - url: `https:` or `http:`, without a user name.
    ///   - secret: `whsec_` and the base64 of 24 to 64 bytes (Standard Webhooks).
    ///   - allowsPrivateAddresses: Whether the address may be one of a private network, or of this machine.
    /// - Throws: `invalid`.
    package init(url: String, secret: String, allowsPrivateAddresses: Bool) throws(GatewayError) {
        guard let parts = URLComponents(string: url), ["https", "http"].contains(parts.scheme?.lowercased()),
            parts.host?.isEmpty == false, parts.user == nil, parts.password == nil
        else {
            throw GatewayError(.invalid, "a webhook's URL begins with https:// and has no user name in it")
        }
        guard let key = StandardWebhook.key(secret) else {
            throw GatewayError(.invalid, "a webhook's secret is whsec_ and the base64 of 24 to 64 bytes")
        }
        self.init(url: url, secret: key, allowsPrivateAddresses: allowsPrivateAddresses)
    }

    package static func newSecret() -> String {
        StandardWebhook.prefix + Data([UInt8].random(count: 32)).base64EncodedString()
    }
}
