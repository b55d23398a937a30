internal import CountersignSQLite
package import GatewayModel

/// What became of deliveries to webhooks, read; a gateway may go on delivering.
package protocol DeliveryLog: Sendable {
    /// Attempts of an endpoint before `sequence`, the newest first; nil begins with the newest.
    func deliveries(
        of endpointID: String, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> [DeliveryRecord]

    /// The last attempt under a `webhook-id`; nil when it is not remembered.
    func delivery(_ messageID: String, of endpointID: String) throws(GatewayError) -> DeliveryRecord?

    /// How far the deliveries to each endpoint have come, by the endpoint's id.
    func progress() throws(GatewayError) -> [String: DeliveryProgress]
}

extension EventLog {
    /// Milliseconds since 1970 when the oldest event was received that an endpoint has not come to yet; nil without one, or
    /// when it cannot be read.
    package func oldestUnread(of endpoint: WebhookEndpoint, _ progress: DeliveryProgress?) -> Int64? {
        let page = try? oldest(
            EventQuery(appID: endpoint.appID), after: progress?.committed ?? endpoint.startSequence, limit: 1)
        return page?.events.first?.receivedMilliseconds
    }
}

/// Reads `webhooks.sqlite`.
struct DeliveryReader: DeliveryLog {
    let readers: SQLiteReaders

    private static let columns = """
        seq, endpoint_id, message_id, kind, first_seq, last_seq, events, attempt, at_ms, duration_ms, status, error,
        answer
        """

    func deliveries(
        of endpointID: String, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> [DeliveryRecord] {
        guard readers.isThere else { return [] }
        return try readers.read { sqlite in
            try sqlite.all(
                """
                SELECT \(Self.columns) FROM delivery WHERE endpoint_id = ?1 AND seq < ?2
                ORDER BY seq DESC LIMIT ?3
                """, .text(endpointID), .integer(sequence ?? .max), .integer(Int64(limit)), row: Self.record)
        }
    }

    func delivery(_ messageID: String, of endpointID: String) throws(GatewayError) -> DeliveryRecord? {
        guard readers.isThere else { return nil }
        return try readers.read { sqlite in
            try sqlite.first(
                """
                SELECT \(Self.columns) FROM delivery WHERE endpoint_id = ?1 AND message_id = ?2
                ORDER BY seq DESC LIMIT 1
                """, .text(endpointID), .text(messageID), row: Self.record)
        }
    }

    func progress() throws(GatewayError) -> [String: DeliveryProgress] {
        guard readers.isThere else { return [:] }
        return try readers.read { try DeliveryProgress.all($0) }
    }

    private static func record(_ row: SQLiteStatement) throws(SQLiteError) -> DeliveryRecord {
        DeliveryRecord(
            sequence: row.int64(0), endpointID: row.text(1), messageID: row.text(2),
            kind: DeliveryRecord.Kind(rawValue: row.text(3)) ?? .events, firstSequence: row.optionalInt64(4),
            lastSequence: row.optionalInt64(5), events: row.int(6), attempt: row.int(7),
            atMilliseconds: row.int64(8), durationMilliseconds: row.int64(9),
            status: row.optionalInt64(10).map { Int($0) }, error: row.optionalText(11), answer: row.text(12))
    }
}
