internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// Reads stored events, also while a gateway writes.
package protocol EventLog: Sendable {
    /// Events stored before `sequence`, the newest first; nil begins with the newest.
    func newest(_ query: EventQuery, before sequence: Int64?, limit: Int) throws(GatewayError) -> EventPage

    /// Events after `sequence`, in ascending order; 0 begins with the oldest.
    func follow(_ query: EventQuery, after sequence: Int64, limit: Int) throws(GatewayError) -> EventRange

    func positions() throws(GatewayError) -> EventPositions

    /// Passes the ids of an app's users after `last` to `isEnough`, in order, until `isEnough` returns true.
    func users(of appID: String, after last: String, _ isEnough: (String) -> Bool) throws(GatewayError)

    /// The number of events of all apps at the last commit.
    func count() throws(GatewayError) -> Int64

    /// The uses of an app's keys up to about a second ago, for each key that has verified a token.
    func keyUses(of appID: String) throws(GatewayError) -> [KeyUse]
}

/// Reads `events.sqlite`.
struct SQLiteEventLog: EventLog {
    let readers: SQLiteReaders
    let runs: OpenIndexRuns

    private func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws(GatewayError) -> Value {
        guard readers.isThere else { throw EventLogState.noEvents }
        return try readers.withConnection(body)
    }

    /// Reads in one transaction, because a gateway may migrate the file meanwhile. A transaction is also faster than
    /// separate statements, because it locks the file only once.
    func snapshot<Value>(
        _ body: (SQLiteConnection, EventLogState) throws -> Value
    ) throws(GatewayError) -> Value {
        try read { sqlite in
            try sqlite.execute("BEGIN")
            defer { try? sqlite.execute("COMMIT") }
            return try body(sqlite, try EventLogState.readExisting(sqlite))
        }
    }

    func count() throws(GatewayError) -> Int64 {
        try read { try EventCounts.events($0) }
    }

    func keyUses(of appID: String) throws(GatewayError) -> [KeyUse] {
        guard readers.isThere else { return [] }
        return try read { try KeyUse.all(of: appID, $0) }
    }

    func newest(
        _ query: EventQuery, before sequence: Int64?, limit: Int
    ) throws(GatewayError) -> EventPage {
        try snapshot { sqlite, log in
            let found = try scan(query, .before(sequence ?? .max), limit: limit, sqlite, log)
            return EventPage(events: found.events, next: found.hasMore ? found.scannedThrough : nil)
        }
    }

    package func users(
        of appID: String, after last: String, _ isEnough: (String) -> Bool
    ) throws(GatewayError) {
        try read { sqlite in
            // Seeks from user to user, so the cost does not depend on the number of events.
            let statement = try sqlite.prepare(
                """
                SELECT min(id) FROM (
                    SELECT min(user_id) AS id FROM app_user WHERE app_id = ?1 AND user_id > ?2
                    UNION ALL
                    SELECT min(value) FROM customer_identifier
                    WHERE app_id = ?1 AND name = 'registered' AND value > ?2)
                """)
            // Reads unlisted users first. A user added to `app_user` meanwhile is then in both results, not in neither.
            var unlisted = try EventCounts.unlistedUsers(of: appID, after: last, sqlite)[...]
            var last = last
            while true {
                try statement.bind([.text(appID), .text(last)])
                let listed = try statement.step() ? statement.optionalText(0) : nil
                unlisted = unlisted.drop { $0 <= last }
                var next = listed ?? unlisted.first
                if let listed, let first = unlisted.first, first < listed { next = first }
                guard let user = next, !isEnough(user) else { return }
                last = user
                statement.reset()
            }
        }
    }

    private static func condition(_ verdict: VerdictFilter) -> String {
        switch verdict {
        case .verdict(let verdict): "verdict = '\(verdict.rawValue)'"
        case .unknown: "verdict IS NULL"
        case .unverified: "coalesce(verdict, '') NOT IN ('verified', 'server')"
        }
    }

    private static func add(_ claim: ClaimFilter, to conditions: inout EventConditions, _ log: EventLogState)
    {
        guard log.hasClaims else { return conditions.add("0") }
        conditions.add(anyOf: claim.members.map { (ClaimFilter.expression(using: "instr"), .text($0)) })
    }

    func scan(
        _ query: EventQuery, _ side: EventIndexReader.Side, through head: Int64 = .max, limit: Int,
        _ sqlite: SQLiteConnection, _ log: EventLogState
    ) throws -> EventRange {
        let isAscending = if case .after = side { true } else { false }
        var page = EventPageBuilder(limit: limit)
        var scan = EventScan(
            query.subject, of: query.appID, side, through: head, maximumScanned: query.maximumScanned,
            leavingOut: try EventTimes.without(
                from: query.fromMilliseconds, to: query.toMilliseconds, sqlite))
        let statement = try Self.statement(query, scan, sqlite, log)
        // In descending order, an additional row shows that another page follows.
        var isCut = false
        let hasEnded = try scan.go(try index(sqlite), statement) { row in
            let isIn = query.partition.has(
                sender: row.optionalText(18), userID: row.optionalText(3), anonymousID: row.optionalText(4))
            guard isIn else { return true }
            isCut = page.isFull
            if !isCut { page.add(row) }
            return !isCut && !(isAscending && page.isFull)
        }
        var range = EventRange(scannedThrough: scan.scannedThrough)
        if isCut, let last = page.events.last { range.scannedThrough = last.sequence }
        range.events = page.events
        range.scanned = scan.scanned
        range.hasMore = isCut || !hasEnded
        return range
    }

    private static func statement(
        _ query: EventQuery, _ scan: EventScan, _ sqlite: SQLiteConnection, _ log: EventLogState
    ) throws -> SQLiteStatement {
        var conditions = EventConditions(of: query.appID)
        conditions.add("message_id = ?", query.messageID.map { .text($0) })
        if let id = query.requestID {
            conditions.add(
                anyOf: [("request_id = ?", .text(id))]
                    + (UUIDText.bytes(of: id).map { [("request_uuid = ?", .blob($0))] } ?? []))
        }
        conditions.add("user_id = ?", query.userID.map { .text($0) })
        if query.userID != nil, !query.isExport, scan.isAscending {
            // Excludes events that were assigned to the user after they were stored (``EventQuery/userID``).
            conditions.add("sender IS NOT '\(EventSender.anonymousContent)'")
        }
        conditions.add("type = ?", query.type.map { .text($0) })
        conditions.add("name = ?", query.name.map { .text($0) })
        conditions.add("received_ms >= ?", query.fromMilliseconds.map { .integer($0) })
        conditions.add("received_ms < ?", query.toMilliseconds.map { .integer($0) })
        if let verdict = query.verdict { conditions.add(condition(verdict)) }
        if let claim = query.claim { add(claim, to: &conditions, log) }
        let columns = "\(EventPageBuilder.columns), \(EventPageBuilder.proofColumns(of: log))"
        let statement = try sqlite.cached(
            scan.select(columns + (query.partition.count > 1 ? ", sender" : ""), conditions))
        try statement.bind(conditions.values)
        return statement
    }
}

struct EventPageBuilder {
    static let columns = "seq, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body"

    /// The last two columns are the request id as bytes and the claims.
    static func proofColumns(of log: EventLogState) -> String {
        "verdict, code, \(EventKeys.id), enforcement, dialect, request_id, token_id, request_uuid, "
            + (log.hasClaims ? "claims" : "NULL")
    }

    let limit: Int
    private(set) var events: [StoredEvent] = []
    private var bytes = 0

    var isFull: Bool { events.count == limit || bytes >= EventPage.mostBytes }

    init(limit: Int) {
        self.limit = limit
    }

    mutating func add(_ row: SQLiteStatement) {
        let event = StoredEvent(row)
        bytes += event.body.count
        events.append(event)
    }
}
