internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// Reads webhook deliveries, also while a gateway delivers.
package protocol DeliveryLog: Sendable {
    /// The delivery attempts before `sequence`, newest first. Nil begins with the newest.
    func deliveries(
        of endpointID: String, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> [DeliveryRecord]

    /// The last attempt to deliver a message; nil when no attempt is stored any more.
    func delivery(_ messageID: String, of endpointID: String) throws(GatewayError) -> DeliveryRecord?
}

package struct DeliveryReader: DeliveryLog {
    let database: any SQLReader

    package init(_ database: any SQLReader) {
        self.database = database
    }

    private static let columns = """
        seq, endpoint_id, message_id, kind, first_seq, last_seq, events, attempt, at_ms, duration_ms, status, error,
        answer
        """

    package func deliveries(
        of endpointID: String, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> [DeliveryRecord] {
        guard database.isThere else { return [] }
        return try database.read { connection in
            try connection.all(
                """
                SELECT \(Self.columns) FROM delivery WHERE endpoint_id = ?1 AND seq < ?2
                ORDER BY seq DESC LIMIT ?3
                """, .text(endpointID), .integer(sequence ?? .max), .integer(Int64(limit)), row: Self.record)
        }
    }

    package func delivery(_ messageID: String, of endpointID: String) throws(GatewayError) -> DeliveryRecord?
    {
        guard database.isThere else { return nil }
        return try database.read { connection in
            try connection.first(
                """
                SELECT \(Self.columns) FROM delivery WHERE endpoint_id = ?1 AND message_id = ?2
                ORDER BY seq DESC LIMIT 1
                """, .text(endpointID), .text(messageID), row: Self.record)
        }
    }

    private static func record(_ row: any SQLRow) -> DeliveryRecord {
        DeliveryRecord(
            sequence: row.int64(0), endpointID: row.text(1), messageID: row.text(2),
            kind: DeliveryRecord.Kind(rawValue: row.text(3)) ?? .events, firstSequence: row.optionalInt64(4),
            lastSequence: row.optionalInt64(5), events: row.int(6), attempt: row.int(7),
            atMilliseconds: row.int64(8), durationMilliseconds: row.int64(9),
            status: row.optionalInt64(10).map { Int($0) }, error: row.optionalText(11), answer: row.text(12))
    }
}
