internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// Where a gateway says that it has changed an app's enforcement by itself.
extension AppDirectory {
    /// Where an app's alerts go; nil for nowhere.
    ///
    /// - Throws: `notFound`, `storage`.
    func alertWebhook(of appID: String) throws(GatewayError) -> PushWebhook? {
        let app = try app(id: appID)
        return try read { sqlite in
            try sqlite.first(
                "SELECT url, secret, allows_private FROM alert_webhook WHERE app_id = ?", .text(app.id)
            ) { PushWebhook(url: $0.text(0), secret: $0.blob(1), allowsPrivateAddresses: $0.int(2) != 0) }
        }
    }

    /// Sets where an app's alerts go.
    ///
    /// - Parameters:
    ///   - url: `https:`, without a user name; `http:` to this machine. Nil: nowhere.
    ///   - secret: `whsec_` and the base64 of 24 to 64 bytes (Standard Webhooks); nil keeps the one there is, or makes one.
    ///   - appID: The app.
    /// - Returns: The secret, when one was made: it is not shown again.
    /// - Throws: `invalid`, `notFound`, `storage`.
    func setAlertWebhook(
        url: String?, secret: String?, for appID: String
    ) throws(GatewayError) -> String? {
        let before = try alertWebhook(of: appID)
        guard let url else {
            try write { sqlite in
                try sqlite.run("DELETE FROM alert_webhook WHERE app_id = ?", .text(appID))
                try audit(
                    sqlite, "webhook.remove", appID, app: appID, before: before.map { .string($0.url) })
            }
            return nil
        }
        let own = ["localhost", "127.0.0.1", "::1", "[::1]"]
        guard let parts = URLComponents(string: url), let host = parts.host, !host.isEmpty,
            parts.scheme == "https" || (parts.scheme == "http" && own.contains(host)), parts.user == nil,
            parts.password == nil
        else {
            throw GatewayError(
                .invalid, "url begins with https:// and has no user name in it; http:// only to this machine")
        }
        var made: String?
        var key = before?.secret ?? []
        if let secret {
            guard let given = StandardWebhook.key(secret) else {
                throw GatewayError(.invalid, "secret is whsec_ and the base64 of 24 to 64 bytes")
            }
            key = given
        } else if before == nil {
            key = .random(count: 32)
            made = StandardWebhook.prefix + Data(key).base64EncodedString()
        }
        let bytes = key
        try write { sqlite in
            try sqlite.run(
                "INSERT OR REPLACE INTO alert_webhook VALUES (?1, ?2, ?3, ?4)", .text(appID), .text(url),
                .blob(bytes), .integer(own.contains(host) ? 1 : 0))
            try audit(
                sqlite, "webhook.set", appID, app: appID, before: before.map { .string($0.url) },
                after: .string(url))
        }
        return made
    }
}
