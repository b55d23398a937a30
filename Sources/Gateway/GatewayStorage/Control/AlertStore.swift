package import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// An alert for an app's webhook. All attempts to deliver it have the same id. The last attempt is the sixth.
package struct Alert: Sendable {
    /// The `webhook-id` of the delivery.
    package let id: String
    package let appID: String
    package let body: [UInt8]
    /// Counts from 1.
    package let attempt: Int
    package let webhook: PushWebhook

    /// Milliseconds between attempts. The first pause is longer than an attempt may take.
    static let pauses: [Int64] = [30_000, 120_000, 600_000, 3_600_000, 21_600_000]

    package var isLastAttempt: Bool { attempt > Self.pauses.count }
}

package struct AlertStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// Queues an alert, in the transaction that causes it. Returns the `webhook-id`; nil when the app has no webhook.
    @discardableResult
    func add(
        _ body: JSONValue, of appID: String, at milliseconds: Int64, _ connection: any SQLConnection
    ) throws -> String? {
        guard try SettingTable(connection: connection).one(PushWebhook.self, of: appID) != nil else {
            return nil
        }
        let id = DeliveryRequest.newMessageID()
        try connection.run(
            "INSERT INTO alert (id, app_id, body, attempts, next_ms) VALUES (?1, ?2, ?3, 0, ?4)",
            .text(id), .text(appID), .blob(body.bytes), .integer(milliseconds))
        return id
    }

    /// Queues an alert. Returns the `webhook-id`; nil when the app has no webhook.
    @discardableResult
    package func queue(
        _ body: JSONValue, of appID: String, at milliseconds: Int64
    ) throws(GatewayError) -> String? {
        try write { try add(body, of: appID, at: milliseconds, $0) }
    }

    private static let isDue = "(next_ms <= ?1 OR next_ms > ?2)"

    /// Returns at most `limit` alerts that are due, and schedules the next attempt of each.
    package func takeDue(at milliseconds: Int64, limit: Int = .max) throws(GatewayError) -> [Alert] {
        let times: [SQLValue] = [
            .integer(milliseconds),
            .integer(DueTime.last(at: milliseconds, within: Alert.pauses.max() ?? 0)),
        ]
        let isDue = try read { connection in
            try connection.all("SELECT 1 FROM alert WHERE \(Self.isDue) LIMIT 1", times) { _ in true }.first
        }
        guard isDue == true else { return [] }
        return try write { connection in
            let webhooks = try SettingTable(connection: connection).all(PushWebhook.self)
            let all = try connection.all(
                "SELECT id, app_id, body, attempts FROM alert WHERE \(Self.isDue) ORDER BY id", times
            ) { row in
                webhooks[row.text(1)].map { webhook in
                    Alert(
                        id: row.text(0), appID: row.text(1), body: row.blob(2), attempt: row.int(3) + 1,
                        webhook: webhook)
                }
            }
            let due = Array(all.compactMap(\.self).prefix(limit))
            for alert in due {
                try connection.run(
                    "UPDATE alert SET attempts = ?1, next_ms = ?2 WHERE id = ?3",
                    .integer(Int64(alert.attempt)),
                    .integer(milliseconds + Alert.pauses[min(alert.attempt, Alert.pauses.count) - 1]),
                    .text(alert.id))
            }
            return due
        }
    }

    package func remove(_ id: String) throws(GatewayError) {
        try write { try $0.run("DELETE FROM alert WHERE id = ?1", .text(id)) }
    }
}
