internal import CountersignCore
internal import CountersignCrypto
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// A token of the admin API, or a reader token for the events of one app. Only the hash of its text is stored.
package struct AdminToken: Sendable {
    package let id: String
    package let name: String
    package let scopes: [String]
    /// The app of a reader token; nil for a token of the admin API.
    package let appID: String?
    package let createdMilliseconds: Int64
    package let usedMilliseconds: Int64?
    package let expiresMilliseconds: Int64?
    let hash: [UInt8]

    /// The highest role that the scopes grant in the admin API; nil for a reader token.
    package var role: AdminRole? {
        scopes == [Self.reader]
            ? nil
            : scopes.contains("admin") ? .owner : scopes.contains("write") ? .operator : .viewer
    }

    /// The scope of a token for only the events and consumers of one app.
    package static let reader = "reader"
    package static let scopes = ["read", "write", "admin", reader]

    /// The token as shown in the audit log.
    var json: JSONValue {
        [
            "name": .string(name), "scopes": .array(scopes.map { .string($0) }),
            "app": appID.map { .string($0) } ?? .null,
            "expires_ms": expiresMilliseconds.map { .integer($0) } ?? .null,
        ]
    }
}

package struct APITokenStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// Oldest first.
    package func all() throws(GatewayError) -> [AdminToken] {
        try read {
            try $0.all("SELECT \(Self.columns) FROM admin_token ORDER BY created_ms, id", row: Self.token)
        }
    }

    /// Creates a token. The scope `reader` excludes other scopes and requires an app. The returned text is not stored.
    package func create(
        name: String, scopes: [String], appID: String? = nil, expiresMilliseconds: Int64? = nil
    ) throws(GatewayError) -> (entry: AdminToken, text: String) {
        guard (1...100).contains(name.utf8.count) else {
            throw GatewayError(.invalid, "a token's name must have 1 to 100 bytes")
        }
        guard !scopes.isEmpty, scopes.allSatisfy(AdminToken.scopes.contains) else {
            throw GatewayError(
                .invalid, "scopes must be one or more of read, write and admin; or reader alone")
        }
        let isReader = scopes.contains(AdminToken.reader)
        guard !isReader || BytewiseSet(scopes).count == 1, isReader == (appID != nil) else {
            throw GatewayError(
                .invalid, "the scope reader excludes other scopes and needs an app; other scopes take no app")
        }
        let text = "csa_" + Base64URL.encode(.random(count: 32))
        var id = ""
        // A leading dash would look like an option on a command line.
        repeat { id = Base64URL.encode(.random(count: 9)) } while id.hasPrefix("-")
        let entry = AdminToken(
            id: id, name: name, scopes: BytewiseSet(scopes).sorted(), appID: appID,
            createdMilliseconds: nowMilliseconds, usedMilliseconds: nil,
            expiresMilliseconds: expiresMilliseconds,
            hash: SHA256.digest(text))
        try write { connection in
            if let appID {
                let isThere = try connection.first("SELECT 1 FROM app WHERE id = ?", .text(appID)) { _ in true
                }
                guard isThere == true else { throw GatewayError(.notFound, "there is no app \(appID)") }
            }
            try connection.run(
                """
                INSERT INTO admin_token (id, name, hash, scopes, created_ms, expires_ms, app_id)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """, .text(entry.id), .text(name),
                .blob(entry.hash), .text(entry.scopes.joined(separator: " ")),
                .integer(entry.createdMilliseconds), .optionalInteger(expiresMilliseconds),
                .optionalText(appID))
            try audit(connection, "token.create", entry.id, after: entry.json)
        }
        return (entry, text)
    }

    package func delete(id: String) throws(GatewayError) {
        try write { connection in
            let token = try connection.first(
                "SELECT \(Self.columns) FROM admin_token WHERE id = ?", .text(id), row: Self.token)
            guard let token else { throw GatewayError(.notFound, "there is no API token \(id)") }
            try connection.run("DELETE FROM admin_token WHERE id = ?", .text(id))
            try audit(connection, "token.delete", id, before: token.json)
        }
    }

    /// Nil when the token does not exist or has expired. Records the use of a valid token at most once an hour.
    package func token(_ text: String, at milliseconds: Int64) throws(GatewayError) -> AdminToken? {
        let hash = SHA256.digest(text)
        let found = try read { connection in
            try connection.first(
                "SELECT \(Self.columns) FROM admin_token WHERE hash = ?", .blob(hash), row: Self.token)
        }
        guard let found, found.expiresMilliseconds.map({ $0 > milliseconds }) ?? true else { return nil }
        if abs(milliseconds - (found.usedMilliseconds ?? 0)) > 3_600_000 {
            // Ignores write errors, so that the admin API remains usable on a full disk.
            try? write {
                try $0.run(
                    "UPDATE admin_token SET used_ms = ?2 WHERE id = ?1", .text(found.id),
                    .integer(milliseconds))
            }
        }
        return found
    }

    private static let columns = "id, name, hash, scopes, created_ms, used_ms, expires_ms, app_id"

    private static func token(_ row: any SQLRow) -> AdminToken {
        AdminToken(
            id: row.text(0), name: row.text(1), scopes: row.text(3).split(separator: " ").map(String.init),
            appID: row.optionalText(7), createdMilliseconds: row.int64(4),
            usedMilliseconds: row.optionalInt64(5),
            expiresMilliseconds: row.optionalInt64(6), hash: row.blob(2))
    }
}
