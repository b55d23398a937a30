internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// What a gateway tells an app's webhook: at least once, with the same id each time.
struct Alert: Sendable {
    /// The webhook's `webhook-id`.
    let id: String
    let appID: String
    let body: [UInt8]
    /// Counts from 1.
    let attempt: Int
    let webhook: PushWebhook

    /// Milliseconds between an attempt and the next; the first is longer than an attempt may take.
    static let pauses: [Int64] = [30_000, 120_000, 600_000, 3_600_000, 21_600_000]

    var isLastAttempt: Bool { attempt > Self.pauses.count }
}

/// Where a gateway tells of an app's enforcement: that it refuses many requests, or has returned by itself.
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

    /// Has an app's webhook told, in the transaction of what it is told of.
    func addAlert(
        _ body: JSONValue, of appID: String, at milliseconds: Int64, _ sqlite: SQLiteConnection
    ) throws {
        try sqlite.run(
            """
            INSERT INTO alert SELECT ?1, app_id, ?2, 0, ?3 FROM alert_webhook WHERE app_id = ?4
            """, .text("msg_" + UUIDv7.make()), .blob(body.bytes), .integer(milliseconds), .text(appID))
    }

    /// Has an app's webhook told.
    ///
    /// - Throws: `storage`.
    func tell(_ body: JSONValue, of appID: String, at milliseconds: Int64) throws(GatewayError) {
        try write { try addAlert(body, of: appID, at: milliseconds, $0) }
    }

    /// Takes the alerts that are due, and sets when each is due again if it is not delivered.
    ///
    /// - Throws: `storage`.
    func takeDueAlerts(at milliseconds: Int64) throws(GatewayError) -> [Alert] {
        let isDue = try read { sqlite in
            try sqlite.first("SELECT 1 FROM alert WHERE next_ms <= ?1", .integer(milliseconds)) { _ in true }
        }
        guard isDue == true else { return [] }
        return try write { sqlite in
            try sqlite.run("DELETE FROM alert WHERE app_id NOT IN (SELECT app_id FROM alert_webhook)")
            let due = try sqlite.all(
                """
                SELECT id, app_id, body, attempts, url, secret, allows_private
                FROM alert JOIN alert_webhook USING (app_id) WHERE next_ms <= ?1 ORDER BY id
                """, .integer(milliseconds)
            ) { row in
                Alert(
                    id: row.text(0), appID: row.text(1), body: row.blob(2), attempt: row.int(3) + 1,
                    webhook: PushWebhook(
                        url: row.text(4), secret: row.blob(5), allowsPrivateAddresses: row.int(6) != 0))
            }
            for alert in due {
                try sqlite.run(
                    "UPDATE alert SET attempts = ?1, next_ms = ?2 WHERE id = ?3",
                    .integer(Int64(alert.attempt)),
                    .integer(milliseconds + Alert.pauses[min(alert.attempt, Alert.pauses.count) - 1]),
                    .text(alert.id))
            }
            return due
        }
    }

    /// Forgets an alert: it was delivered, or will not be tried again.
    ///
    /// - Throws: `storage`.
    func removeAlert(_ id: String) throws(GatewayError) {
        try write { try $0.run("DELETE FROM alert WHERE id = ?1", .text(id)) }
    }

    /// Sets where an app's alerts go.
    ///
    /// - Parameters:
    ///   - url: `https:`, without a user name; where private addresses are allowed also `http:` to this machine. Nil:
    ///     nowhere.
    ///   - secret: `whsec_` and the base64 of 24 to 64 bytes (Standard Webhooks); nil keeps the one there is, or makes one.
    ///   - allowsPrivateAddresses: Whether it may be on a private network or on this machine.
    ///   - appID: The app.
    /// - Returns: The secret, when one was made: it is not shown again.
    /// - Throws: `invalid`, `notFound`, `storage`.
    func setAlertWebhook(
        url: String?, secret: String?, allowsPrivateAddresses: Bool = false, for appID: String
    ) throws(GatewayError) -> String? {
        let before = try alertWebhook(of: appID)
        guard let url else {
            try write { sqlite in
                try sqlite.run("DELETE FROM alert_webhook WHERE app_id = ?", .text(appID))
                try audit(
                    sqlite, "webhook.remove", appID, app: appID, before: before.map(Self.json))
            }
            return nil
        }
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
                .blob(bytes), .integer(allowsPrivateAddresses ? 1 : 0))
            try audit(
                sqlite, "webhook.set", appID, app: appID, before: before.map(Self.json),
                after: Self.json(
                    PushWebhook(url: url, secret: [], allowsPrivateAddresses: allowsPrivateAddresses)))
        }
        return made
    }

    private static func json(_ webhook: PushWebhook) -> JSONValue {
        ["url": .string(webhook.url), "allow_private": .bool(webhook.allowsPrivateAddresses)]
    }
}
