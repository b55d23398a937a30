internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

struct EventRows {
    /// In the order in which ``event(_:)`` reads them.
    static let columns = """
        position, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body, verdict, code,
        key_id, enforcement, dialect, request_id, token_id, sender, claims
        """
    static let columnCount: Int32 = 18
    static let userID: Int32 = 3
    static let anonymousID: Int32 = 4
    static let sender: Int32 = 16
    static let rowsPerStep = 128

    enum Range {
        /// The events before a position, in descending order.
        case before(Int64)
        case after(Int64, through: Int64)
    }

    let limit: Int
    private(set) var events: [StoredEvent] = []
    private var bytes = 0

    init(limit: Int) {
        self.limit = limit
    }

    var isFull: Bool { events.count == limit || bytes >= EventPage.mostBytes }

    mutating func add(_ row: PostgreSQLRow) {
        let event = Self.event(row)
        bytes += event.body.count
        events.append(event)
    }

    private static func event(_ row: PostgreSQLRow) -> StoredEvent {
        let verdict = row.optionalText(9).flatMap { EventProof.Verdict(rawValue: $0) }
        return StoredEvent(
            sequence: row.int64(0), messageID: row.text(1), type: row.text(2), userID: row.optionalText(3),
            anonymousID: row.optionalText(4), name: row.optionalText(5), timestampMilliseconds: row.int64(6),
            receivedMilliseconds: row.int64(7),
            proof: verdict.map { verdict in
                EventProof(
                    verdict: verdict, code: row.optionalInt64(10).map { Int($0) },
                    keyID: row.optionalText(11), enforcement: row.optionalText(12), dialect: row.text(13),
                    requestID: row.text(14), tokenID: row.optionalText(15),
                    claims: row.optionalText(17))
            }, body: row.blob(8))
    }

    private static func condition(_ verdict: VerdictFilter) -> String {
        switch verdict {
        case .verdict(let verdict): "verdict IS NOT DISTINCT FROM '\(verdict.rawValue)'"
        case .unknown: "verdict IS NULL"
        case .unverified: "coalesce(verdict, '') NOT IN ('verified', 'server')"
        }
    }

    /// An SQL condition for a claim. Appends its parameters to `values`.
    private static func condition(_ claim: ClaimFilter, _ values: inout [SQLValue]) -> String {
        let alternatives = claim.members.map { member in
            values.append(.text(member))
            return ClaimFilter.expression(using: "strpos").replacing("?", with: "?\(values.count)") + " > 0"
        }
        return "(" + alternatives.joined(separator: " OR ") + ")"
    }

    /// The columns, and whether the row matches the conditions. The body of a row that does not match is not read.
    private static func columns(matching conditions: [String]) -> String {
        let matches = conditions.isEmpty ? "true" : conditions.joined(separator: " AND ")
        return columns.replacing("body", with: "CASE WHEN \(matches) THEN body ELSE '' END") + ", \(matches)"
    }

    private static func matches(_ row: PostgreSQLRow) -> Bool { row.int(columnCount) != 0 }

    static func scan(
        _ query: EventQuery, _ range: Range, limit: Int, at now: Date, _ connection: PostgreSQLConnection
    ) throws -> EventRange {
        var conditions = EventConditions(of: query.appID)
        conditions.scan("user_id = ?", query.userID.map { .text($0) })
        conditions.match("request_id IS NOT DISTINCT FROM ?", query.requestID.map { .text($0) })
        conditions.match("type = ?", query.type.map { .text($0) })
        conditions.match("name IS NOT DISTINCT FROM ?", query.name.map { .text($0) })
        conditions.match("received_ms >= ?", query.fromMilliseconds.map { .integer($0) })
        conditions.match("received_ms < ?", query.toMilliseconds.map { .integer($0) })
        // Lets PostgreSQL skip partitions, each of which has the events of a day.
        conditions.scan("day >= ?", query.fromMilliseconds.map { .integer(day(of: $0)) })
        conditions.scan("day <= ?", query.toMilliseconds.map { .integer(day(of: $0)) })
        if let verdict = query.verdict { conditions.matching.append(condition(verdict)) }
        if let claim = query.claim { conditions.matching.append(condition(claim, &conditions.values)) }
        if let id = query.messageID { try conditions.add(messageID: id, at: now, connection) }
        let end: Int64?
        var found: EventRange
        switch range {
        case .before(let sequence): (end, found) = (nil, EventRange(scannedThrough: sequence))
        case .after(let sequence, let head):
            (end, found) = (head, EventRange(scannedThrough: sequence))
            conditions.scan("position <= ?", .integer(head))
            if query.userID != nil, !query.isExport {
                // Excludes events that were assigned to the user after they were stored (``EventQuery/userID``).
                conditions.matching.append("sender IS DISTINCT FROM '\(EventSender.anonymousContent)'")
            }
        }
        let isUp = end != nil
        conditions.scan("position \(isUp ? ">" : "<") ?", .integer(found.scannedThrough))
        let start = conditions.values.count - 1
        let sql = """
            SELECT \(columns(matching: conditions.matching)) FROM event
            WHERE \(conditions.scanning.joined(separator: " AND "))
            ORDER BY position \(isUp ? "" : "DESC") LIMIT
            """
        var rows = EventRows(limit: limit)
        while true {
            var (count, isCut) = (0, false)
            let most = min(rowsPerStep, query.maximumScanned - found.scanned)
            conditions.values[start] = .integer(found.scannedThrough)
            // The limit is not a parameter, because a plan for an unknown limit may sort all rows.
            try connection.each("\(sql) \(most)", Parameters(conditions.values)) { row in
                let isWanted =
                    matches(row)
                    && query.partition.has(
                        sender: row.optionalText(sender), userID: row.optionalText(userID),
                        anonymousID: row.optionalText(anonymousID))
                // In descending order, an additional match shows that another page follows.
                isCut = rows.isFull && (isUp || isWanted)
                if isCut { return false }
                if isWanted { rows.add(row) }
                found.scannedThrough = row.int64(0)
                count += 1
                return true
            }
            found.scanned += count
            let isEnd = count < most && !isCut
            if isEnd || isCut || found.scanned == query.maximumScanned || isUp && rows.isFull {
                if isEnd, let end { found.scannedThrough = end }
                found.hasMore = end.map { found.scannedThrough < $0 } ?? !isEnd
                found.events = rows.events
                return found
            }
        }
    }

    private static func day(of milliseconds: Int64) -> Int64 {
        Int64((Double(milliseconds) / 86_400_000).rounded(.down))
    }
}

private struct EventConditions {
    var values: [SQLValue]
    /// Conditions for the rows to examine, which an index can find.
    private(set) var scanning = ["app_id = ?1"]
    /// Conditions for the rows to return, among those examined.
    var matching: [String] = []

    init(of appID: String) {
        values = [.text(appID)]
    }

    /// Adds a condition for the rows to examine. The value replaces the first question mark; nil adds nothing.
    mutating func scan(_ condition: String, _ value: SQLValue?) {
        guard let value else { return }
        scanning.append(numbered(condition, value))
    }

    /// Adds a condition for the rows to return, unless the value is nil. The condition must not be NULL for any row.
    mutating func match(_ condition: String, _ value: SQLValue?) {
        guard let value else { return }
        matching.append(numbered(condition, value))
    }

    private mutating func numbered(_ condition: String, _ value: SQLValue) -> String {
        values.append(value)
        guard let parameter = condition.range(of: "?") else { return condition }
        return condition[..<parameter.lowerBound] + "?\(values.count)" + condition[parameter.upperBound...]
    }

    /// Adds a condition for a message id. The daily partitions of `message_id` with old dates were dropped, but the
    /// default partition has the ids that were that old on receipt: of such an id, the latest event is found. For any
    /// other id with an old date, the condition selects events received from one day before to 46 days after that date.
    mutating func add(messageID id: String, at now: Date, _ connection: PostgreSQLConnection) throws {
        let bucket = Int64(MessageKey.bucket(of: id))
        let today = Milliseconds(now).count / 86_400_000
        let days = Int64(EventPartitions.idDays)
        match("message_id = ?", .text(id))
        let sql = "SELECT 1 FROM message_id WHERE bucket = ?1 AND app_id = ?2 AND id = ?3 LIMIT 1"
        if bucket >= 0, bucket < today - days + 1,
            try connection.first(sql, .integer(bucket), values[0], .text(id), row: { $0.int(0) }) == nil
        {
            scan("day >= ?", .integer(bucket - 1))
            scan("day <= ?", .integer(bucket + days + 1))
        } else {
            let text = values.count
            scan(
                """
                position = ANY (ARRAY(
                    SELECT position FROM message_id WHERE bucket = ? AND app_id = ?1 AND id = ?\(text)))
                """, .integer(bucket))
        }
    }
}
