package import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Which events to read. What is nil is not looked at.
package struct EventQuery: Sendable {
    package var appID: String
    package var userID: String?
    package var messageID: String?
    package var type: String?
    package var name: String?
    package var verdict: VerdictFilter?
    /// Milliseconds since 1970 of the time of receipt, the first inclusive and the last exclusive.
    package var fromMilliseconds: Int64?
    package var toMilliseconds: Int64?

    package init(appID: String) {
        self.appID = appID
    }
}

/// One stored event.
package struct StoredEvent: Sendable {
    /// Counts up in the order of storing.
    package let sequence: Int64
    package let messageID: String
    package let type: String
    package let userID: String?
    package let anonymousID: String?
    package let name: String?
    package let timestampMilliseconds: Int64
    package let receivedMilliseconds: Int64
    /// How it was judged; nil for events that were stored before that was.
    package let proof: EventProof?
    /// The event as it came, as JSON.
    package let body: [UInt8]

    package init(
        sequence: Int64, messageID: String, type: String, userID: String?, anonymousID: String?,
        name: String?, timestampMilliseconds: Int64, receivedMilliseconds: Int64, proof: EventProof?,
        body: [UInt8]
    ) {
        self.sequence = sequence
        self.messageID = messageID
        self.type = type
        self.userID = userID
        self.anonymousID = anonymousID
        self.name = name
        self.timestampMilliseconds = timestampMilliseconds
        self.receivedMilliseconds = receivedMilliseconds
        self.proof = proof
        self.body = body
    }

    /// `unknown` for events that were stored before verdicts were.
    package var verdict: String { proof?.verdict.rawValue ?? "unknown" }

    /// The event as a JSON object, appended to `output`. Its body is written from text to text: as values it would take
    /// many times its bytes.
    package func write(to output: inout [UInt8]) {
        output.append(contentsOf: #"{"body":"#.utf8)
        let parser = StrictJSONParser(maximumBytes: max(1, body.count))
        output.append(
            contentsOf: (try? parser.parse(bytes: body) { $0.canonicalBytes }) ?? Array("null".utf8))
        output.append(UInt8(ascii: ","))
        let others: JSONValue = [
            "seq": .integer(sequence), "message_id": .string(messageID), "type": .string(type),
            "user_id": userID.map { .string($0) } ?? .null,
            "anonymous_id": anonymousID.map { .string($0) } ?? .null,
            "name": name.map { .string($0) } ?? .null, "timestamp_ms": .integer(timestampMilliseconds),
            "received_ms": .integer(receivedMilliseconds), "verdict": .string(verdict),
            "code": (proof?.code).map { .integer(Int64($0)) } ?? .null,
            "key_id": (proof?.keyID).map { .string($0) } ?? .null,
            "enforcement": (proof?.enforcement).map { .string($0) } ?? .null,
            "dialect": (proof?.dialect).map { .string($0) } ?? .null,
            "request_id": (proof?.requestID).map { .string($0) } ?? .null,
            "token_id": (proof?.tokenID).map { .string($0) } ?? .null,
        ]
        output.append(contentsOf: others.bytes.dropFirst())
    }

    /// The body as a JSON value; null when it cannot be read, or has names that may take long to compare.
    package var bodyValue: JSONValue {
        let parser = StrictJSONParser(maximumBytes: max(1, body.count), maximumNameBytes: 1_024)
        return (try? parser.parse(bytes: body) { $0.value }) ?? .null
    }
}

/// A part of a list of events.
package struct EventPage: Sendable {
    package var events: [StoredEvent] = []
    /// True when there may be more after the last one.
    package var hasMore = false
}

/// What has been stored, as one reads it; a gateway may go on storing.
package protocol EventLog: Sendable {
    /// A page of events stored before `sequence`, the newest first; nil begins with the newest.
    func newest(_ query: EventQuery, before sequence: Int64?, limit: Int) throws(GatewayError) -> EventPage

    /// A page of events stored after `sequence`, the oldest first; 0 begins with the oldest.
    func oldest(_ query: EventQuery, after sequence: Int64, limit: Int) throws(GatewayError) -> EventPage

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
        return try readers.read(body)
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

    private static func condition(_ verdict: VerdictFilter, hasVerdicts: Bool) -> String {
        switch verdict {
        case .verdict(let verdict): hasVerdicts ? "verdict = '\(verdict.rawValue)'" : "0"
        case .unknown: hasVerdicts ? "verdict IS NULL" : "1"
        case .unverified:
            hasVerdicts ? "verdict IS NOT '\(EventProof.Verdict.verified.rawValue)'" : "1"
        }
    }

    private func page(
        _ query: EventQuery, where condition: String, bound: Int64, order: String, limit: Int
    ) throws(GatewayError) -> EventPage {
        var conditions = ["app_id = ?"]
        var values: [SQLiteValue] = [.text(query.appID)]
        func add(_ condition: String, _ value: SQLiteValue?) {
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
        let subject = query.messageID.map { EventSubject.message($0) } ?? query.userID.map { .user($0) }
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
            guard let subject else {
                // In the order of storing; the plus sign keeps an older file's indexes out of it.
                let statement = try sqlite.prepare(
                    select.replacing("app_id", with: "+app_id", maxReplacements: 1)
                        + "\(condition) ORDER BY seq \(order)")
                try statement.bind(values + [.integer(bound)])
                while try statement.step(), page.add(statement) {}
                return page.page
            }
            let index = try EventIndexReader(
                sqlite, folder: IndexFolder.path(besides: readers.path), runs: runs)
            let statement = try sqlite.prepare(select + "seq = ?")
            var bound = bound
            while true {
                let sequences = try index.sequences(
                    of: subject, in: query.appID, order == "ASC" ? .after(bound) : .before(bound),
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
private struct EventPageBuilder {
    static let columns = "seq, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body"
    static let proofColumns = "verdict, code, key_id, enforcement, dialect, request_id, token_id"
    static let noProof = "NULL, NULL, NULL, NULL, NULL, NULL, NULL"

    let limit: Int
    private(set) var page = EventPage()
    private var bytes = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// Takes the event of a row; false when the page was full without it.
    mutating func add(_ row: SQLiteStatement) -> Bool {
        if page.events.count == limit || bytes >= EventReader.pageBytes {
            page.hasMore = true
            return false
        }
        let event = StoredEvent(
            sequence: row.int64(0), messageID: row.text(1), type: row.text(2), userID: row.optionalText(3),
            anonymousID: row.optionalText(4), name: row.optionalText(5), timestampMilliseconds: row.int64(6),
            receivedMilliseconds: row.int64(7), proof: Self.proof(row), body: Array(row.text(8).utf8))
        bytes += event.body.count
        page.events.append(event)
        return true
    }

    private static func proof(_ row: SQLiteStatement) -> EventProof? {
        guard let verdict = row.optionalText(9).flatMap({ EventProof.Verdict(rawValue: $0) }) else {
            return nil
        }
        return EventProof(
            verdict: verdict, code: row.optionalInt64(10).map { Int($0) }, keyID: row.optionalText(11),
            enforcement: row.optionalText(12), dialect: row.text(13), requestID: row.text(14),
            tokenID: row.optionalText(15))
    }
}
