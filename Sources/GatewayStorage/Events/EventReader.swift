internal import CountersignSQLite
package import GatewayModel

/// What has been stored, as one reads it; a gateway may go on storing.
package protocol EventLog: Sendable {
    /// A page of events stored before `sequence`, the newest first; nil begins with the newest.
    func newest(_ query: EventQuery, before sequence: Int64?, limit: Int) throws(GatewayError) -> EventPage

    /// A page of events stored after `sequence`, the oldest first; 0 begins with the oldest.
    func oldest(_ query: EventQuery, after sequence: Int64, limit: Int) throws(GatewayError) -> EventPage

    /// The events of an app after `sequence`, in their order, for whoever follows them; see ``EventFollowing``.
    func follow(_ following: EventFollowing, after sequence: Int64, limit: Int) throws(GatewayError)
        -> EventStretch

    /// What turns numbers of events into positions, and back.
    func positions() throws(GatewayError) -> EventPositions

    /// Calls back with an app's users after a given one, each once, in the order of their ids, until it answers true.
    func users(of appID: String, after last: String, _ isEnough: (String) -> Bool) throws(GatewayError)

    /// How many events all apps have, as of the last commit.
    func count() throws(GatewayError) -> Int64

    /// The uses of an app's keys as of the last second or so, one for each key that has verified something.
    func keyUses(of appID: String) throws(GatewayError) -> [KeyUse]
}

/// Reads `events.sqlite`.
struct EventReader: EventLog {
    /// A page ends after the event that brings it to so many bytes, however few events it has by then.
    static let pageBytes = 1 << 20
    /// Numbers that the index is asked for at once.
    private static let sequencesPerStep = 128

    let readers: SQLiteReaders
    let runs: OpenIndexRuns

    private func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws(GatewayError) -> Value {
        guard readers.isThere else {
            throw GatewayError(.notFound, "there are no events yet: no gateway has run on this folder")
        }
        return try readers.withConnection(body)
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
        try page(query, where: "seq < ?", bound: sequence ?? .max, order: "DESC", limit: limit)
    }

    func oldest(
        _ query: EventQuery, after sequence: Int64, limit: Int
    ) throws(GatewayError) -> EventPage {
        try page(query, where: "seq > ?", bound: sequence, order: "ASC", limit: limit)
    }

    package func users(
        of appID: String, after last: String, _ isEnough: (String) -> Bool
    ) throws(GatewayError) {
        try read { sqlite in
            // A file that this version's gateway has not opened yet has an index instead.
            let source = try EventLogState.read(sqlite) == nil ? "event" : "app_user"
            // From user to user, whatever the number of events.
            let statement = try sqlite.prepare(
                """
                SELECT min(id) FROM (
                    SELECT min(user_id) AS id FROM \(source)
                    WHERE app_id = ?1 AND user_id IS NOT NULL AND user_id > ?2
                    UNION ALL
                    SELECT min(value) FROM customer_identifier
                    WHERE app_id = ?1 AND name = 'registered' AND value > ?2)
                """)
            var last = last
            while true {
                try statement.bind([.text(appID), .text(last)])
                guard try statement.step(), let user = statement.optionalText(0), !isEnough(user) else {
                    return
                }
                last = user
                statement.reset()
            }
        }
    }

    static func condition(_ verdict: VerdictFilter, hasVerdicts: Bool) -> String {
        switch verdict {
        case .verdict(let verdict): hasVerdicts ? "verdict = '\(verdict.rawValue)'" : "0"
        case .unknown: hasVerdicts ? "verdict IS NULL" : "1"
        case .unverified:
            hasVerdicts ? "coalesce(verdict, '') NOT IN ('verified', 'server')" : "1"
        }
    }

    private func page(
        _ query: EventQuery, where condition: String, bound: Int64, order: String, limit: Int
    ) throws(GatewayError) -> EventPage {
        var conditions = ["app_id = ?"]
        var values: [SQLValue] = [.text(query.appID)]
        func add(_ condition: String, _ value: SQLValue?) {
            guard let value else { return }
            conditions.append(condition)
            values.append(value)
        }
        add("message_id = ?", query.messageID.map { .text($0) })
        add("user_id = ?", query.userID.map { .text($0) })
        add("type = ?", query.type.map { .text($0) })
        add("name = ?", query.name.map { .text($0) })
        add("received_ms >= ?", query.fromMilliseconds.map { .integer($0) })
        add("received_ms < ?", query.toMilliseconds.map { .integer($0) })
        return try read { sqlite in
            // A file that this version's gateway has not opened yet has no verdicts.
            let hasVerdicts = try EventLogState.read(sqlite) != nil
            if let verdict = query.verdict {
                conditions.append(Self.condition(verdict, hasVerdicts: hasVerdicts))
            }
            let proof = hasVerdicts ? EventPageBuilder.proofColumns : EventPageBuilder.noProof
            let select =
                "SELECT \(EventPageBuilder.columns), \(proof) FROM event WHERE \(conditions.joined(separator: " AND ")) AND "
            var page = EventPageBuilder(limit: limit)
            guard hasVerdicts || query.messageID != nil || query.userID != nil else {
                // In the order of storing; the plus sign keeps an older file's indexes out of it.
                let statement = try sqlite.prepare(
                    select.replacing("app_id", with: "+app_id", maxReplacements: 1)
                        + "\(condition) ORDER BY seq \(order)")
                try statement.bind(values + [.integer(bound)])
                while try statement.step(), page.add(statement) {}
                return page.page
            }
            let index = try index(sqlite)
            let statement = try sqlite.prepare(select + "seq = ?")
            var bound = bound
            while true {
                let sequences = try index.sequences(
                    of: query.subject, in: query.appID, order == "ASC" ? .after(bound) : .before(bound),
                    limit: Self.sequencesPerStep)
                for sequence in sequences {
                    try statement.bind(values + [.integer(sequence)])
                    let goesOn = try !statement.step() || page.add(statement)
                    statement.reset()
                    if !goesOn { return page.page }
                }
                guard sequences.count == Self.sequencesPerStep, let last = sequences.last else {
                    return page.page
                }
                bound = last
            }
        }
    }
}

/// Gathers the events of a page.
struct EventPageBuilder {
    static let columns = "seq, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body"
    static let proofColumns = "verdict, code, key_id, enforcement, dialect, request_id, token_id"
    static let noProof = "NULL, NULL, NULL, NULL, NULL, NULL, NULL"

    let limit: Int
    private(set) var page = EventPage()
    private var bytes = 0

    var isFull: Bool { page.events.count == limit || bytes >= EventReader.pageBytes }

    init(limit: Int) {
        self.limit = limit
    }

    /// Takes the event of a row; false when the page was full without it.
    mutating func add(_ row: SQLiteStatement) -> Bool {
        if isFull {
            page.hasMore = true
            return false
        }
        let event = StoredEvent(row)
        bytes += event.body.count
        page.events.append(event)
        return true
    }
}
