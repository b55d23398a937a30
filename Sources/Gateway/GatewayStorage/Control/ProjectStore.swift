package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Stores the content for clients of the Bloomreach dialect.
package struct ProjectStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    package static let maximumInboxMessages = 10_000

    /// Adds a key that signs customer tokens with HS256. Returns the secret, which is shown only once.
    package func addCustomerTokenKey(
        id: String, secret: String? = nil, to appID: String
    ) throws(GatewayError) -> String {
        let secret = secret ?? Data([UInt8].random(count: 32)).base64EncodedString()
        guard (1...128).contains(id.utf8.count), id.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            GivenName.isUsable(id)
        else {
            throw GatewayError(
                .invalid, "a key's id must have 1 to 128 visible ASCII characters, and \(GivenName.rule)")
        }
        guard secret.utf8.count >= 32 else {
            throw GatewayError(.invalid, "a secret for HS256 must have at least 32 bytes")
        }
        let now = nowMilliseconds
        try writeProject(of: appID) { connection in
            try audit(connection, "project.private_key.add", id, app: appID, after: ["id": .string(id)])
            let stored = try connection.sealed(Array(secret.utf8), .customerTokenKey, appID, id)
            try connection.run(
                """
                INSERT INTO customer_token_key (app_id, id, secret, created_ms) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO NOTHING
                """, .text(appID), .text(id), .blob(stored), .integer(now))
            guard connection.changes > 0 else {
                throw GatewayError(.conflict, "the app \(appID) already has a private key \(id)")
            }
        }
        return secret
    }

    package func deleteCustomerTokenKey(id: String, of appID: String) throws(GatewayError) {
        try delete(
            "DELETE FROM customer_token_key WHERE app_id = ?1 AND id = ?2", id: id,
            "project.private_key.delete", "private key", of: appID, before: { _ in ["id": .string(id)] })
    }

    /// Adds or replaces an item. Returns its id. The reason of `invalid` names the member and the expected type.
    @discardableResult
    package func put(_ kind: ProjectItem.Kind, json: String, in appID: String) throws(GatewayError) -> String
    {
        let item = try ProjectItem(kind, Self.value(of: json))
        try Self.check(id: item.id)
        try writeProject(of: appID) { connection in
            let before = try ProjectReader(connection: connection).projects(of: appID)[appID]?.items(kind)
                .first { $0.id == item.id }
            try audit(
                connection, "project.item.put", "\(kind.rawValue)/\(item.id)", app: appID,
                before: before?.json,
                after: item.json)
            try connection.run(
                """
                INSERT INTO project_item (app_id, kind, id, body) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (app_id, kind, id) DO UPDATE SET body = excluded.body
                """, .text(appID), .text(kind.rawValue), .text(item.id),
                .text(String(decoding: item.json.bytes, as: UTF8.self)))
        }
        return item.id
    }

    package func remove(_ kind: ProjectItem.Kind, id: String, from appID: String) throws(GatewayError) {
        try delete(
            "DELETE FROM project_item WHERE app_id = ?1 AND id = ?2 AND kind = '\(kind.rawValue)'", id: id,
            "project.item.delete", kind.rawValue, of: appID,
            before: { $0.items(kind).first { $0.id == id }?.json })
    }

    /// Adds or replaces a message. Clients receive a replaced message again. Throws `conflict` when the inbox is full.
    package func putInboxMessage(
        id: String, type: String, content: String, recipient: CustomerIdentifier? = nil,
        expiresMilliseconds: Int64? = nil, in appID: String
    ) throws(GatewayError) {
        guard (1...128).contains(id.utf8.count) else {
            throw GatewayError(.invalid, "a message's id must have 1 to 128 bytes")
        }
        try Self.check(id: id)
        guard ["html", "push"].contains(type) else {
            throw GatewayError(.invalid, "a message's type must be html or push")
        }
        let value = try Self.value(of: content)
        guard case .object = value else {
            throw GatewayError(.invalid, "a message's content must be a JSON object")
        }
        let now = nowMilliseconds
        let item = InboxMessage(
            id: id, revision: 0, recipient: recipient, type: type, content: value.bytes,
            createdMilliseconds: now, expiresMilliseconds: expiresMilliseconds)
        try writeProject(of: appID) { connection in
            let before = try ProjectReader(connection: connection).projects(of: appID)[appID]?.inbox.all.first
            {
                $0.id == id
            }
            try audit(
                connection, "project.item.put", "inbox_message/\(id)", app: appID, before: before?.json,
                after: item.json)
            // A replaced message retains its creation time.
            let created =
                try connection.first(
                    "SELECT created_ms FROM inbox_message WHERE app_id = ?1 AND id = ?2", .text(appID),
                    .text(id)
                ) { $0.int64(0) } ?? now
            try connection.run(
                "DELETE FROM inbox_message WHERE app_id = ?1 AND id = ?2", .text(appID), .text(id))
            let count =
                try connection.first("SELECT count(*) FROM inbox_message WHERE app_id = ?1", .text(appID)) {
                    $0.int(0)
                } ?? 0
            guard count < Self.maximumInboxMessages else {
                throw GatewayError(
                    .conflict, "the inbox of \(appID) has \(count) messages, which is the maximum")
            }
            try connection.run(
                """
                INSERT INTO inbox_message (app_id, id, recipient_name, recipient_value, type, content, created_ms,
                    expires_ms)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                """, .text(appID), .text(id), .optionalText(recipient?.name), .optionalText(recipient?.value),
                .text(type), .text(String(decoding: value.bytes, as: UTF8.self)), .integer(created),
                .optionalInteger(expiresMilliseconds))
        }
    }

    /// The JSON has `id`, `type`, `content` and optionally `recipient` (an object with one id and its value) and
    /// `expires` (RFC 3339). Returns the id. The reason of `invalid` names the member and the expected type.
    package func putInboxMessage(json: String, in appID: String) throws(GatewayError) -> String {
        guard case .object(let members) = try Self.value(of: json) else {
            throw GatewayError(.invalid, "a message must be a JSON object")
        }
        let known = ["content", "expires", "id", "recipient", "type"]
        if let unknown = members.keys.sorted().first(where: { !known.contains($0) }) {
            throw GatewayError(
                .invalid,
                "a message has no member \(unknown); its members are \(known.joined(separator: ", "))")
        }
        guard case .string(let id)? = members["id"], case .string(let type)? = members["type"] else {
            throw GatewayError(.invalid, "a message's id and type must be strings")
        }
        var recipient: CustomerIdentifier?
        switch members["recipient"] {
        case nil, .null?: break
        case .object(let ids)?:
            guard ids.count == 1, let (name, value) = ids.first, case .string(let text) = value else {
                fallthrough
            }
            recipient = CustomerIdentifier(name: name, value: text)
        default:
            throw GatewayError(
                .invalid,
                #"a message's recipient must be an object with one id, such as {"registered":"user-1"}"#)
        }
        var expires: Int64?
        switch members["expires"] {
        case nil, .null?: break
        case .string(let text)?:
            expires = RFC3339.milliseconds(text)
            if expires == nil { fallthrough }
        default:
            throw GatewayError(
                .invalid, "a message's expires must be a date and time such as 2026-12-24T18:00:00Z")
        }
        try putInboxMessage(
            id: id, type: type,
            content: String(decoding: (members["content"] ?? .null).bytes, as: UTF8.self),
            recipient: recipient, expiresMilliseconds: expires, in: appID)
        return id
    }

    private static func check(id: String) throws(GatewayError) {
        guard GivenName.isUsable(id) else { throw GatewayError(.invalid, "an id \(GivenName.rule)") }
    }

    /// Removes a message. Clients keep it until they fetch the inbox from the start (``endSyncTokens(of:)``).
    package func removeInboxMessage(id: String, from appID: String) throws(GatewayError) {
        try delete(
            "DELETE FROM inbox_message WHERE app_id = ?1 AND id = ?2", id: id, "project.item.delete",
            "inbox_message", of: appID, before: { $0.inbox.all.first { $0.id == id }?.json })
    }

    /// Deletes the messages to an erased customer. Returns their number, which is all that the audit log records.
    package func removeInboxMessages(to recipients: [CustomerIdentifier], of appID: String)
        throws(GatewayError)
        -> Int
    {
        try write { connection in
            let count = try recipients.reduce(0) { count, recipient in
                try connection.run(
                    """
                    DELETE FROM inbox_message WHERE app_id = ?1 AND recipient_name = ?2 AND recipient_value = ?3
                    """, .text(appID), .text(recipient.name), .text(recipient.value))
                return count + connection.changes
            }
            // Gateways reload their data when the audit log has a new entry.
            if count > 0 {
                try audit(
                    connection, "project.item.delete", "inbox_message", app: appID,
                    before: ["messages": .integer(Int64(count))])
            }
            return count
        }
    }

    /// Makes clients fetch their App Inbox from the start. Clients before iOS SDK 4.0 do so only after the next
    /// identification.
    package func endSyncTokens(of appID: String) throws(GatewayError) {
        try writeProject(of: appID) { connection in
            let table = SettingTable(connection: connection)
            var settings = try table.effective(ProjectSettings.self, of: appID)
            settings.inboxEpoch += 1
            try table.put(settings, of: appID)
            try audit(connection, "project.sync_tokens.end", appID, app: appID)
        }
    }

    package func project(of appID: String) throws(GatewayError) -> Project {
        try read { connection in
            guard let project = try ProjectReader(connection: connection).projects(of: appID)[appID] else {
                throw Self.noApp(appID)
            }
            return project
        }
    }

    package func all() throws(GatewayError) -> BytewiseDictionary<Project> {
        try read { try ProjectReader(connection: $0).projects() }
    }

    private func writeProject(
        of appID: String, _ body: (any SQLConnection) throws -> Void
    ) throws(GatewayError) {
        try write { connection in
            try Self.checkApp(appID, connection)
            try body(connection)
        }
    }

    private func delete(
        _ sql: String, id: String, _ action: String, _ what: String, of appID: String,
        before: (Project) -> JSONValue?
    ) throws(GatewayError) {
        try write { connection in
            let value = try ProjectReader(connection: connection).projects(of: appID)[appID].flatMap(before)
            try connection.run(sql, .text(appID), .text(id))
            guard connection.changes > 0 else {
                throw GatewayError(.notFound, "the app \(appID) has no \(what) \(id)")
            }
            try audit(connection, action, "\(what)/\(id)", app: appID, before: value)
        }
    }

    private static func value(of json: String) throws(GatewayError) -> JSONValue {
        do {
            return try StrictJSONParser(maximumBytes: 1 << 20, maximumNameBytes: 256).parse(
                bytes: Array(json.utf8)
            ) { $0.value }
        } catch {
            throw GatewayError(.invalid, "the text must be JSON of at most 1 MiB without duplicate members")
        }
    }
}
