package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// The stored data of a customer in `events.sqlite` and `analytics.sqlite`.
package struct SQLiteCustomerRecords: CustomerRecordStore {
    private static let mostProperties = 1_000
    private static let propertyBytes = 1 << 20
    private static let mostCounted = 100_000
    /// Limits of one commit, so that the gateway's writer is not blocked for long.
    private static let rowsPerCommit = 500
    static let bytesPerCommit: Int64 = 4 << 20

    let events: SQLiteReaders
    let analytics: SQLiteReaders
    let runs: OpenIndexRuns

    private func index(_ events: SQLiteConnection) throws -> EventIndexReader {
        try EventIndexReader(events, folder: IndexFolder.path(besides: self.events.path), runs: runs)
    }

    package func find(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerRecord?
    {
        guard events.isThere else { return nil }
        return try events.withConnection { events in
            var record = CustomerRecord(identifiers: [identifier])
            let profile = try Self.profile(of: identifier, appID, events)
            if let profile {
                record.identifiers = try Self.identifiers(of: profile, events)
                let times = try events.first(
                    "SELECT created_ms, seen_ms FROM customer WHERE id = ?1", .text(profile)
                ) { ($0.int64(0), $0.int64(1)) }
                (record.createdMilliseconds, record.seenMilliseconds) = (times?.0, times?.1)
                try Self.readProperties(of: profile, events, into: &record)
            }
            let index = try index(events)
            for identifier in record.identifiers where record.events < Self.mostCounted {
                record.events += try Self.count(identifier, appID, events, index)
            }
            record.events = min(record.events, Self.mostCounted)
            return profile == nil && record.events == 0 ? nil : record
        }
    }

    package func apps() throws(GatewayError) -> BytewiseSet {
        guard events.isThere else { return [] }
        return try events.withConnection { try Self.apps($0) }
    }

    /// Also overwrites the deleted data on disk (`PRAGMA secure_delete`).
    package func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerDeletion
    {
        var deletion = CustomerDeletion()
        guard let events = try writer(of: events) else { return deletion }
        let analytics = try writer(of: analytics)
        var identifiers = [identifier]
        try GatewayError.storing {
            try events.execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
            let profile = try Self.profile(of: identifier, appID, events)
            if let profile { identifiers = try Self.identifiers(of: profile, events) }
            let index = try index(events)
            for identifier in identifiers {
                var reached: Int64? = 0
                while let after = reached {
                    let piece = try Self.leavingTime {
                        try Self.deletePiece(of: identifier, in: appID, after: after, events, index)
                    }
                    deletion.events += piece.events
                    reached = piece.reached
                }
            }
            try analytics?.execute("PRAGMA secure_delete = ON")
            for identifier in identifiers where identifier.isHard {
                guard let analytics else { break }
                // The token of a request may belong to another user than the request.
                try analytics.run(
                    """
                    DELETE FROM sample WHERE app_id = ?1 AND (user_id = ?2
                        OR json_extract(iif(json_valid(claims), claims, '{}'), '$.sub') = ?2)
                    """, .text(appID), .text(identifier.value))
                deletion.samples += analytics.changes
                try analytics.run(
                    "DELETE FROM failed_user_hour WHERE app_id = ?1 AND user = ?2", .text(appID),
                    .integer(Int64(bitPattern: DistinctCounter.hash(identifier.value))))
            }
            // The profile is deleted last: a repeated deletion needs its list of the person's ids.
            if let profile {
                while try !Self.leavingTime({ try Self.forgetPiece(profile, events) }) {}
                deletion.hasProfile = true
            }
        }
        return deletion
    }

    // MARK: Reading

    /// The index key of the events with a person's id.
    private static func subject(_ identifier: CustomerIdentifier) -> EventSubject {
        identifier.isHard ? .user(identifier.value) : .device(identifier.value)
    }

    /// An SQL condition for an event of a person. Parameters: the sequence number, the app, the id's value and name.
    ///
    /// Another soft id may have the same value as a cookie, so the event must also contain the id's name.
    private static func condition(_ identifier: CustomerIdentifier) -> String {
        if identifier.isHard { return "seq = ?1 AND app_id = ?2 AND user_id = ?3 AND ?4 = ?4" }
        let device = "seq = ?1 AND app_id = ?2 AND anonymous_id = ?3 AND user_id IS NULL AND "
        return identifier.isCookie
            ? device + "?4 = ?4"
            : device
                + """
                EXISTS (SELECT 1 FROM json_each(iif(json_valid(body), body, '{}'), '$.customer_ids')
                    WHERE key = ?4 AND value = ?3)
                """
    }

    private static func count(
        _ identifier: CustomerIdentifier, _ appID: String, _ events: SQLiteConnection,
        _ index: EventIndexReader
    ) throws -> Int {
        var count = 0
        var reached: Int64 = 0
        while count < mostCounted {
            let sequences = try index.sequences(
                of: subject(identifier), in: appID, .after(reached), limit: rowsPerCommit)
            for sequence in sequences {
                let isThere = try events.first(
                    "SELECT 1 FROM event WHERE \(condition(identifier))", .integer(sequence), .text(appID),
                    .text(identifier.value), .text(identifier.name)
                ) { _ in true }
                if isThere == true { count += 1 }
            }
            guard sequences.count == rowsPerCommit, let last = sequences.last else { break }
            reached = last
        }
        return count
    }

    private static func profile(
        of identifier: CustomerIdentifier, _ appID: String, _ events: SQLiteConnection
    ) throws -> String? {
        try events.first(
            "SELECT customer_id FROM customer_identifier WHERE app_id = ?1 AND name = ?2 AND value = ?3",
            .text(appID), .text(identifier.name), .text(identifier.value)
        ) { $0.text(0) }
    }

    private static func identifiers(
        of profile: String, _ events: SQLiteConnection
    ) throws -> [CustomerIdentifier] {
        try events.all(
            "SELECT name, value FROM customer_identifier WHERE customer_id = ?1 ORDER BY seq", .text(profile)
        ) { CustomerIdentifier(name: $0.text(0), value: $0.text(1)) }
    }

    private static func readProperties(
        of profile: String, _ events: SQLiteConnection, into record: inout CustomerRecord
    ) throws {
        let statement = try events.prepare(
            """
            SELECT name, value, updated_ms FROM customer_property WHERE customer_id = ?1 AND value <> 'null'
            ORDER BY name
            """)
        try statement.bind([.text(profile)])
        var bytes = 0
        while try statement.step() {
            let text = Array(statement.text(1).utf8)
            bytes += text.count
            guard record.properties.count < mostProperties, bytes <= propertyBytes else {
                record.hasMoreProperties = true
                return
            }
            let value = try? StrictJSONParser(maximumBytes: max(1, text.count), maximumNameBytes: 1_024)
                .parse(bytes: text) { $0.value }
            record.properties.append(
                CustomerRecord.Property(
                    name: statement.text(0), value: value ?? .null, updatedMilliseconds: statement.int64(2)))
        }
    }

    // MARK: Deleting

    /// Pauses for twice the duration of `work`, so that other connections, which poll for the lock, can take it.
    private static func leavingTime<Value>(_ work: () throws -> Value) rethrows -> Value {
        let began = DispatchTime.now().uptimeNanoseconds
        let value = try work()
        let taken = Double(DispatchTime.now().uptimeNanoseconds - began) / 1e9
        Thread.sleep(forTimeInterval: max(0.005, 2 * taken))
        return value
    }

    /// Deletes events in one transaction. Returns their number, and the last examined event; nil if all were examined.
    static func deletePiece(
        of identifier: CustomerIdentifier, in appID: String, after sequence: Int64,
        _ events: SQLiteConnection,
        _ index: EventIndexReader
    ) throws -> (events: Int, reached: Int64?) {
        try events.transaction {
            try EventCounts.complete(events)
            let sequences = try index.sequences(
                of: subject(identifier), in: appID, .after(sequence), limit: rowsPerCommit)
            var (count, bytes) = (0, Int64(0))
            var reached = sequences.count == rowsPerCommit ? sequences.last : nil
            for sequence in sequences {
                if bytes >= bytesPerCommit { break }
                let size = try events.first(
                    "DELETE FROM event WHERE \(condition(identifier)) RETURNING length(CAST(body AS BLOB))",
                    .integer(sequence), .text(appID), .text(identifier.value), .text(identifier.name)
                ) { $0.int64(0) }
                guard let size else { continue }
                bytes += size
                count += 1
                if bytes >= bytesPerCommit { reached = sequence }
            }
            if count > 0 {
                try events.run(
                    "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                    .text(appID), .integer(Int64(count)), .integer(bytes))
            }
            if reached == nil, identifier.isHard, try EventLogState.read(events) != nil {
                for table in ["event_claim", "app_user"] {
                    try events.run(
                        "DELETE FROM \(table) WHERE app_id = ?1 AND user_id = ?2", .text(appID),
                        .text(identifier.value))
                }
            }
            return (count, reached)
        }
    }

    /// Deletes a part of a profile in one transaction. Returns whether the profile is completely deleted.
    private static func forgetPiece(_ profile: String, _ events: SQLiteConnection) throws -> Bool {
        try events.transaction {
            let bytes =
                try events.first("SELECT bytes FROM customer WHERE id = ?1", .text(profile)) { $0.int64(0) }
                ?? 0
            // Deletes fewer rows at a time from a large profile, because each row may be long.
            return try CustomerWriter.forget(
                profile, rows: bytes > bytesPerCommit ? 8 : rowsPerCommit, events)
        }
    }

    /// Nil when the file does not exist, because no gateway has run yet.
    private func writer(of file: SQLiteReaders) throws(GatewayError) -> SQLiteConnection? {
        guard file.isThere else { return nil }
        return try GatewayError.storing { try SQLiteConnection(path: file.path) }
    }
}
