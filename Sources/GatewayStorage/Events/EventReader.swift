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
    /// The event as it came, as JSON.
    package let body: [UInt8]

    package init(
        sequence: Int64, messageID: String, type: String, userID: String?, anonymousID: String?,
        name: String?, timestampMilliseconds: Int64, receivedMilliseconds: Int64, body: [UInt8]
    ) {
        self.sequence = sequence
        self.messageID = messageID
        self.type = type
        self.userID = userID
        self.anonymousID = anonymousID
        self.name = name
        self.timestampMilliseconds = timestampMilliseconds
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
    }

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
            "received_ms": .integer(receivedMilliseconds),
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
    /// True when there may be more behind the last one.
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

    /// The uses of an app's keys as of the last commit, one for each key that has verified something.
    func keyUses(of appID: String) throws(GatewayError) -> [KeyUse]
}

/// Reads `events.sqlite`.
struct EventReader: EventLog {
    /// A page ends after the event that brings it to so many bytes, however few events it has by then.
    static let pageBytes = 1 << 20

    let readers: SQLiteReaders

    private func read<Value>(_ body: (SQLiteConnection) throws -> Value) throws(GatewayError) -> Value {
        guard readers.isThere else {
            throw GatewayError(.notFound, "there are no events yet: no gateway has run on this folder")
        }
        return try readers.read(body)
    }

    func count() throws(GatewayError) -> Int64 {
        try read { try $0.first("SELECT sum(events) FROM app_usage") { $0.int64(0) } ?? 0 }
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
            // From user to user through the index, whatever the number of events.
            let statement = try sqlite.prepare(
                """
                SELECT min(id) FROM (
                    SELECT min(user_id) AS id FROM event
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

    private func page(
        _ query: EventQuery, where condition: String, bound: Int64, order: String, limit: Int
    ) throws(GatewayError) -> EventPage {
        var conditions: [String] = []
        var values: [SQLiteValue] = []
        func add(_ condition: String, _ value: SQLiteValue?) {
            guard let value else { return }
            conditions.append(condition)
            values.append(value)
        }
        // A message id or a user has an index that begins with the app. Without either the order of storing is the way;
        // the plus sign keeps the planner from collecting and sorting all that the app has.
        let hasIndex = query.messageID != nil || query.userID != nil
        add(hasIndex ? "app_id = ?" : "+app_id = ?", .text(query.appID))
        add("message_id = ?", query.messageID.map { .text($0) })
        add("user_id = ?", query.userID.map { .text($0) })
        add("type = ?", query.type.map { .text($0) })
        add("name = ?", query.name.map { .text($0) })
        add("received_ms >= ?", query.fromMilliseconds.map { .integer($0) })
        add("received_ms < ?", query.toMilliseconds.map { .integer($0) })
        add(condition, .integer(bound))
        values.append(.integer(Int64(limit) + 1))
        return try read { sqlite in
            let statement = try sqlite.prepare(
                """
                SELECT seq, message_id, type, user_id, anonymous_id, name, timestamp_ms, received_ms, body
                FROM event WHERE \(conditions.joined(separator: " AND ")) ORDER BY seq \(order) LIMIT ?
                """)
            try statement.bind(values)
            var page = EventPage()
            var bytes = 0
            while try statement.step() {
                if page.events.count == limit || bytes >= Self.pageBytes {
                    page.hasMore = true
                    break
                }
                let event = StoredEvent(
                    sequence: statement.int64(0), messageID: statement.text(1), type: statement.text(2),
                    userID: statement.optionalText(3), anonymousID: statement.optionalText(4),
                    name: statement.optionalText(5), timestampMilliseconds: statement.int64(6),
                    receivedMilliseconds: statement.int64(7), body: Array(statement.text(8).utf8))
                bytes += event.body.count
                page.events.append(event)
            }
            return page
        }
    }
}
