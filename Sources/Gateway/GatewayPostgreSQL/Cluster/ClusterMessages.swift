internal import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
internal import GatewayStorage

/// Transient messages between gateways. Their table is unlogged: not replicated, and empty after a server crash.
enum ClusterMessages {
    /// How long messages are stored. Gateways poll at least once a second.
    static let keptMilliseconds: Int64 = 10_000
    static let channel = "countersign_message"

    static func send(
        _ messages: [ClusterMessage], of gateway: String, after number: Int64,
        _ connection: PostgreSQLConnection
    ) throws {
        var parameters = Parameters()
        parameters.add(.text(gateway))
        parameters.add(.integer(number))
        parameters.add(texts: messages.map { $0.kind.rawValue })
        parameters.add(texts: messages.map { String(decoding: $0.body.bytes, as: UTF8.self) })
        try connection.each(
            """
            INSERT INTO cluster_message SELECT $1, $2 + place, kind, body, \(ClusterTables.now)
            FROM unnest($3, $4) WITH ORDINALITY AS sent (kind, body, place)
            """, parameters
        ) { _ in true }
        // No NOTIFY for verdicts: there are many of them, and PostgreSQL serializes commits with notifications.
        if messages.contains(where: { $0.kind != .verdicts }) { try connection.execute("NOTIFY \(channel)") }
    }

    /// Messages of other gateways after the known message numbers, in each gateway's order of sending.
    static func received(
        by gateway: String, after known: BytewiseDictionary<Int64>, _ connection: PostgreSQLConnection
    ) throws -> [(gateway: String, number: Int64, message: ClusterMessage?)] {
        var parameters = Parameters()
        parameters.add(.text(gateway))
        parameters.add(texts: known.map(\.key))
        parameters.add(integers: known.map(\.value))
        var received: [(gateway: String, number: Int64, message: ClusterMessage?)] = []
        try connection.each(
            """
            SELECT gateway, number, kind, body FROM cluster_message LEFT JOIN unnest($2, $3) AS known (name, last)
            ON name = gateway WHERE gateway <> $1 AND number > coalesce(last, 0) ORDER BY gateway, number
            """, parameters
        ) { row in
            received.append((row.text(0), row.int64(1), message(row.text(2), Array(row.text(3).utf8))))
            return true
        }
        return received
    }

    /// Deletes a gateway's messages that are older than ``keptMilliseconds``, or all. Returns whether any remain.
    static func delete(of gateway: String, all: Bool, _ connection: PostgreSQLConnection) throws -> Bool {
        try connection.run(
            "DELETE FROM cluster_message WHERE gateway = ?1 AND sent_ms < \(ClusterTables.now) - ?2",
            .text(gateway), .integer(all ? -1_000 : keptMilliseconds))
        return try connection.first(
            "SELECT 1 FROM cluster_message WHERE gateway = ?1 LIMIT 1", .text(gateway)
        ) { _ in true } == true
    }

    static func sweep(_ connection: PostgreSQLConnection) throws {
        try connection.run(
            "DELETE FROM cluster_message WHERE sent_ms < \(ClusterTables.now) - ?1",
            .integer(6 * keptMilliseconds))
    }

    /// Nil for a message kind of a later version, or a body that is not JSON.
    private static func message(_ kind: String, _ body: [UInt8]) -> ClusterMessage? {
        guard let kind = ClusterMessage.Kind(rawValue: kind) else { return nil }
        let value = try? StrictJSONParser(maximumBytes: max(1, body.count), maximumDepth: 8)
            .parse(bytes: body) { $0.value }
        return value.map { ClusterMessage(kind, $0) }
    }
}
