internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// Reads rows of events, and gathers those of a page.
struct EventRows {
    /// In the order in which ``event(_:)`` reads them.
    static let columns = """
        position, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body, verdict, code,
        key_id, enforcement, dialect, request_id, token_id, sender
        """
    static let columnCount: Int32 = 17
    static let userID: Int32 = 3
    static let anonymousID: Int32 = 4
    static let sender: Int32 = 16
    /// Rows that are asked for at once.
    static let rowsPerStep = 128
    /// A page ends after the event that brings it to so many bytes, however few events it has by then.
    private static let pageBytes = 1 << 20

    enum Range {
        /// Counting down.
        case before(Int64)
        case after(Int64, through: Int64)
    }

    let limit: Int
    private(set) var found = EventPage()
    private var bytes = 0

    init(limit: Int) {
        self.limit = limit
    }

    var isFull: Bool { found.events.count == limit || bytes >= Self.pageBytes }

    mutating func add(_ row: PostgreSQLRow) {
        let event = Self.event(row)
        bytes += event.body.count
        found.events.append(event)
    }

    static func event(_ row: PostgreSQLRow) -> StoredEvent {
        let verdict = row.optionalText(9).flatMap { EventProof.Verdict(rawValue: $0) }
        return StoredEvent(
            sequence: row.int64(0), messageID: row.text(1), type: row.text(2), userID: row.optionalText(3),
            anonymousID: row.optionalText(4), name: row.optionalText(5), timestampMilliseconds: row.int64(6),
            receivedMilliseconds: row.int64(7),
            proof: verdict.map { verdict in
                EventProof(
                    verdict: verdict, code: row.optionalInt64(10).map { Int($0) },
                    keyID: row.optionalText(11), enforcement: row.optionalText(12), dialect: row.text(13),
                    requestID: row.text(14), tokenID: row.optionalText(15))
            }, body: row.blob(8))
    }

    static func condition(_ verdict: VerdictFilter) -> String {
        switch verdict {
        case .verdict(let verdict): "verdict IS NOT DISTINCT FROM '\(verdict.rawValue)'"
        case .unknown: "verdict IS NULL"
        case .unverified: "coalesce(verdict, '') NOT IN ('verified', 'server')"
        }
    }

    /// A page of the events that a query asks for.
    static func page(
        _ query: EventQuery, _ range: Range, limit: Int, at now: Date, _ connection: PostgreSQLConnection
    ) throws -> EventPage {
        var values: [SQLValue] = [.text(query.appID)]
        var conditions = ["app_id = ?1"]
        func add(_ condition: String, _ value: SQLValue?) {
            guard let value else { return }
            values.append(value)
            conditions.append(condition + " ?\(values.count)")
        }
        add("user_id =", query.userID.map { .text($0) })
        add("type =", query.type.map { .text($0) })
        add("name =", query.name.map { .text($0) })
        add("received_ms >=", query.fromMilliseconds.map { .integer($0) })
        add("received_ms <", query.toMilliseconds.map { .integer($0) })
        // Days are partitions: those outside are not opened.
        add(
            "day >=", query.fromMilliseconds.map { .integer(Int64((Double($0) / 86_400_000).rounded(.down))) }
        )
        add("day <=", query.toMilliseconds.map { .integer(Int64((Double($0) / 86_400_000).rounded(.down))) })
        if let verdict = query.verdict { conditions.append(condition(verdict)) }
        if let id = query.messageID { addMessage(id, at: now, &conditions, &values) }
        let isUp: Bool
        var bound: Int64
        switch range {
        case .before(let end): (isUp, bound) = (false, end)
        case .after(let start, let head):
            (isUp, bound) = (true, start)
            add("position <=", .integer(head))
        }
        values.append(.integer(bound))
        let rest = """
            WHERE \(conditions.joined(separator: " AND ")) AND position \(isUp ? ">" : "<") ?\(values.count)
            ORDER BY position \(isUp ? "" : "DESC") LIMIT \(rowsPerStep)
            """
        var rows = EventRows(limit: limit)
        while true {
            var count = 0
            values[values.count - 1] = .integer(bound)
            try connection.each("SELECT \(columns) FROM event " + rest, Parameters(values)) { row in
                if rows.isFull {
                    rows.found.hasMore = true
                    return false
                }
                rows.add(row)
                bound = row.int64(0)
                count += 1
                return true
            }
            if rows.found.hasMore || count < rowsPerStep { return rows.found }
        }
    }

    /// By the table of ids; ids of a day that is over for devices are gone from there, so their events are looked for where
    /// they must be.
    private static func addMessage(
        _ id: String, at now: Date, _ conditions: inout [String], _ values: inout [SQLValue]
    ) {
        let bucket = Int64(MessageKey(id: id, app: "", whose: "").bucket)
        values += [.text(id), .integer(bucket)]
        let (text, number) = (values.count - 1, values.count)
        let today = Milliseconds(now).count / 86_400_000
        conditions.append("message_id = ?\(text)")
        conditions.append(
            bucket >= 0 && bucket < today - Int64(EventPartitions.idDays) + 1
                ? "day BETWEEN ?\(number) - 1 AND ?\(number) + \(EventPartitions.idDays + 1)"
                : """
                position = ANY (ARRAY(
                    SELECT position FROM message_id WHERE bucket = ?\(number) AND app_id = ?1 AND id = ?\(text)))
                """)
    }
}
