package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import Foundation
package import GatewayModel

package struct WebhookStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// The maximum number of endpoints of all apps. Each endpoint reads the event log separately.
    package static let most = 1_024
    package static let mostOfApp = 128
    /// The maximum number of pending tests and replays of an endpoint.
    package static let mostRequests = 16

    /// In the order of creation.
    package func all(of appID: String) throws(GatewayError) -> [WebhookEndpoint] {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try Self.endpoints(connection, where: "WHERE app_id = ?1", [.text(appID)])
        }
    }

    package func all() throws(GatewayError) -> [WebhookEndpoint] {
        try read { try Self.endpoints($0) }
    }

    package func endpoint(_ id: String, of appID: String) throws(GatewayError) -> WebhookEndpoint {
        try read { try Self.endpoint(id, of: appID, $0) }
    }

    /// Creates an endpoint that starts after `startSequence`. The secret is shown once. Throws `conflict` for too many.
    package func create(
        of appID: String, _ members: JSONObject, secret: String?, after startSequence: Int64,
        at milliseconds: Int64
    ) throws(GatewayError) -> (endpoint: WebhookEndpoint, secret: String) {
        var endpoint = WebhookEndpoint(
            id: "wh_" + UUIDv7.make(), appID: appID, createdMilliseconds: milliseconds,
            startSequence: startSequence)
        endpoint.set(members)
        try endpoint.check()
        let secret = secret ?? PushWebhook.newSecret()
        endpoint.secret = try Self.key(secret)
        let made = endpoint
        try write { connection in
            try Self.checkApp(appID, connection)
            let others = try Self.endpoints(connection)
            guard others.count < Self.most, others.count(where: { $0.appID == appID }) < Self.mostOfApp else {
                throw GatewayError(
                    .conflict,
                    "an app may have at most \(Self.mostOfApp) webhooks and a gateway \(Self.most); delete one first"
                )
            }
            try connection.run(
                "INSERT INTO webhook_endpoint (id, app_id, created_ms, body) VALUES (?1, ?2, ?3, ?4)",
                .text(made.id), .text(appID), .integer(milliseconds), Self.body(made, connection))
            try audit(
                connection, "webhook.create", made.id, app: appID, after: made.audited, at: milliseconds)
        }
        return (made, secret)
    }

    package func change(
        _ id: String, of appID: String, _ members: JSONObject, at milliseconds: Int64
    ) throws(GatewayError) {
        try update(id, of: appID, "webhook.change", at: milliseconds) { endpoint in
            endpoint.set(members)
            try endpoint.check()
        }
    }

    /// A nil `pause` resumes deliveries and makes the next delivery due now, even if the endpoint is not paused.
    /// `alert` is queued for the app's alert webhook.
    package func setPause(
        _ pause: WayPause?, of id: String, of appID: String, alert: JSONValue? = nil,
        at milliseconds: Int64
    ) throws(GatewayError) {
        try update(
            id, of: appID, pause == nil ? "webhook.resume" : "webhook.pause", isNoted: pause == nil,
            alert: alert, at: milliseconds
        ) { endpoint in
            // A second pause leaves the first unchanged.
            if pause == nil || endpoint.pause == nil { endpoint.pause = pause }
        }
    }

    /// Replaces the secret. For `hours`, deliveries have signatures of both secrets. Returns the new secret.
    package func rotateSecret(
        of id: String, of appID: String, to secret: String?, keepingOldFor hours: Int,
        at milliseconds: Int64
    ) throws(GatewayError) -> String {
        let secret = secret ?? PushWebhook.newSecret()
        let key = try Self.key(secret)
        try update(id, of: appID, "webhook.rotate", isNoted: true, at: milliseconds) { endpoint in
            guard endpoint.secret != key else { return }
            endpoint.oldSecret =
                hours == 0
                ? nil
                : .init(
                    secret: endpoint.secret, untilMilliseconds: milliseconds + Int64(hours) * 3_600_000)
            endpoint.secret = key
        }
        return secret
    }

    /// Deletes an endpoint with its pending tests and replays.
    package func delete(_ id: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let endpoint = try Self.endpoint(id, of: appID, connection)
            try connection.run("DELETE FROM webhook_endpoint WHERE id = ?1", .text(id))
            try audit(connection, "webhook.delete", id, app: appID, before: endpoint.audited)
        }
    }

    // MARK: Tests and replays

    /// Queues a test or a replay. Returns its `webhook-id`. Throws `conflict` when too many requests are pending.
    package func request(
        _ kind: DeliveryRequest.Kind, of id: String, of appID: String, after: Int64 = 0, through: Int64 = 0,
        at milliseconds: Int64
    ) throws(GatewayError) -> String {
        let messageID = DeliveryRequest.newMessageID()
        try write { connection in
            _ = try Self.endpoint(id, of: appID, connection)
            let waiting = try connection.first(
                "SELECT count(*) FROM webhook_request WHERE endpoint_id = ?1", .text(id)
            ) { $0.int(0) }
            guard waiting ?? 0 < Self.mostRequests else {
                throw GatewayError(
                    .conflict,
                    "\(Self.mostRequests) tests and replays are already waiting; wait until one is done")
            }
            try connection.run(
                """
                INSERT INTO webhook_request (\(Self.requestColumns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7, NULL)
                """, .text(UUIDv7.make()), .text(id), .text(kind.rawValue), .text(messageID),
                .integer(after), .integer(through), .integer(milliseconds))
            let range: JSONValue? =
                kind == .replay ? ["after_seq": .integer(after), "through_seq": .integer(through)] : nil
            try audit(
                connection, "webhook.\(kind.rawValue)", id, app: appID, after: range, at: milliseconds)
        }
        return messageID
    }

    /// Oldest first.
    package func requests() throws(GatewayError) -> [DeliveryRequest] {
        try read { connection in
            try connection.all("SELECT \(Self.requestColumns) FROM webhook_request ORDER BY id") { row in
                DeliveryRequest(
                    id: row.text(0), wayName: row.text(1),
                    kind: DeliveryRequest.Kind(rawValue: row.text(2)) ?? .test, messageID: row.text(3),
                    after: row.int64(4), through: row.int64(5), failures: row.int(6),
                    nextMilliseconds: row.int64(7), digest: row.optionalText(8))
            }
        }
    }

    package func keep(_ request: DeliveryRequest) throws(GatewayError) {
        try write { connection in
            try connection.run(
                """
                UPDATE webhook_request SET message_id = ?2, after_seq = ?3, failures = ?4, next_ms = ?5,
                    digest = ?6
                WHERE id = ?1
                """, .text(request.id), .text(request.messageID), .integer(request.after),
                .integer(Int64(request.failures)), .integer(request.nextMilliseconds),
                .optionalText(request.digest))
        }
    }

    package func remove(_ request: DeliveryRequest) throws(GatewayError) {
        try write { try $0.run("DELETE FROM webhook_request WHERE id = ?1", .text(request.id)) }
    }

    // MARK: Rows

    private static let requestColumns =
        "id, endpoint_id, kind, message_id, after_seq, through_seq, failures, next_ms, digest"

    /// Without `isNoted`, adds no audit entry and no revision if `edit` changes nothing.
    private func update(
        _ id: String, of appID: String, _ action: String, isNoted: Bool = false, alert: JSONValue? = nil,
        at milliseconds: Int64, _ edit: (inout WebhookEndpoint) throws -> Void
    ) throws(GatewayError) {
        try write { connection in
            let before = try Self.endpoint(id, of: appID, connection)
            var after = before
            try edit(&after)
            guard after != before || isNoted else { return }
            after.revision += 1
            try connection.run(
                "UPDATE webhook_endpoint SET body = ?2 WHERE id = ?1", .text(id), Self.body(after, connection)
            )
            try audit(
                connection, action, id, app: appID, before: before.audited, after: after.audited,
                at: milliseconds)
            if let alert {
                try AlertStore(database: database, actor: actor, now: now)
                    .add(alert, of: appID, at: milliseconds, connection)
            }
        }
    }

    private static func key(_ secret: String) throws(GatewayError) -> [UInt8] {
        guard let key = WebhookSignature.key(secret) else {
            throw GatewayError(.invalid, "secret must be whsec_ and the base64 of 24 to 64 bytes")
        }
        return key
    }

    private static func body(
        _ endpoint: WebhookEndpoint, _ connection: any SQLConnection
    ) throws -> SQLValue {
        let stored = try connection.sealed(endpoint.kept.bytes, .webhook, endpoint.id)
        return .text(String(decoding: stored, as: UTF8.self))
    }

    private static func endpoint(
        _ id: String, of appID: String, _ connection: any SQLConnection
    ) throws -> WebhookEndpoint {
        let found = try endpoints(
            connection, where: "WHERE app_id = ?1 AND id = ?2", [.text(appID), .text(id)])
        guard let endpoint = found.first else {
            throw GatewayError(.notFound, "the app \(appID) has no webhook \(id)")
        }
        return endpoint
    }

    private static func endpoints(
        _ connection: any SQLConnection, where condition: String = "", _ values: [SQLValue] = []
    ) throws -> [WebhookEndpoint] {
        let rows = try connection.all(
            "SELECT id, app_id, created_ms, body FROM webhook_endpoint \(condition) ORDER BY created_ms, id",
            values
        ) { ($0.text(0), $0.text(1), $0.int64(2), Array($0.text(3).utf8)) }
        return try rows.map { id, appID, created, stored in
            let body = try connection.opened(stored, .webhook, id)
            let parser = StrictJSONParser(maximumBytes: max(1, body.count))
            guard let members = try parser.parse(bytes: body, { $0.value }).members else {
                throw GatewayError(.storage, "the webhook \(id) is damaged")
            }
            return WebhookEndpoint(id: id, appID: appID, createdMilliseconds: created, kept: members)
        }
    }
}
