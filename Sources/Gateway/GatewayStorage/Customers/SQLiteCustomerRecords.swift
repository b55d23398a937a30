package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// The stored data of a customer in `events.sqlite` and `analytics.sqlite`.
package struct SQLiteCustomerRecords: CustomerRecordStore {
    /// A limit of one commit, so that the gateway's writer is not blocked for long.
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
            let index = try index(events)
            return try Self.find(identifier, in: appID, events) { try Self.count($0, appID, events, index) }
        }
    }

    package func apps() throws(GatewayError) -> BytewiseSet {
        guard events.isThere else { return [] }
        return try events.withConnection { try Self.apps($0) }
    }

    /// Deletes the person's data, and overwrites it on disk (`PRAGMA secure_delete`).
    package func delete(_ identifier: CustomerIdentifier, in appID: String) throws(GatewayError)
        -> CustomerDeletion
    {
        guard let events = try writer(of: events) else { return CustomerDeletion() }
        let analytics = try writer(of: analytics)
        return try GatewayError.storing {
            try events.execute("PRAGMA secure_delete = ON; PRAGMA synchronous = FULL")
            try analytics?.execute("PRAGMA secure_delete = ON")
            let index = try index(events)
            return try Self.delete(identifier, in: appID, events) { identifier, after in
                try Self.leavingTime {
                    try Self.deletePiece(of: identifier, in: appID, after: after, events, index)
                }
            } samples: { user in
                try analytics.map { try Self.deleteSamples(of: user, in: appID, $0) } ?? 0
            } profile: { profile in
                try Self.leavingTime { try Self.deletePiece(ofProfile: profile, events) }
            }
        }
    }

    /// The index key of the events with a person's id.
    private static func subject(_ identifier: CustomerIdentifier) -> EventSubject {
        identifier.isHard ? .user(identifier.value) : .device(identifier.value)
    }

    /// An SQL condition for an event of a person. Parameters: the sequence number, the app, the id's value and name.
    ///
    /// A cookie and another soft id may have equal values. So for the other soft id, the event must contain its name.
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
        var scannedThrough: Int64 = 0
        while count < mostCounted {
            let sequences = try index.sequences(
                of: subject(identifier), in: appID, .after(scannedThrough), limit: rowsPerCommit)
            for sequence in sequences {
                let isThere = try events.first(
                    "SELECT 1 FROM event WHERE \(condition(identifier))", .integer(sequence), .text(appID),
                    .text(identifier.value), .text(identifier.name)
                ) { _ in true }
                if isThere == true { count += 1 }
            }
            guard sequences.count == rowsPerCommit, let last = sequences.last else { break }
            scannedThrough = last
        }
        return count
    }

    /// Runs `work`, then pauses for twice its duration. Other connections poll for the lock, and can take it then.
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
        _ events: SQLiteConnection, _ index: EventIndexReader
    ) throws -> (events: Int, scannedThrough: Int64?) {
        try events.transaction {
            try EventCounts.complete(events)
            let sequences = try index.sequences(
                of: subject(identifier), in: appID, .after(sequence), limit: rowsPerCommit)
            var (count, bytes) = (0, Int64(0))
            var scannedThrough = sequences.count == rowsPerCommit ? sequences.last : nil
            for sequence in sequences {
                if bytes >= bytesPerCommit { break }
                let size = try events.first(
                    "DELETE FROM event WHERE \(condition(identifier)) RETURNING length(CAST(body AS BLOB))",
                    .integer(sequence), .text(appID), .text(identifier.value), .text(identifier.name)
                ) { $0.int64(0) }
                guard let size else { continue }
                bytes += size
                count += 1
                if bytes >= bytesPerCommit { scannedThrough = sequence }
            }
            if count > 0 {
                try events.run(
                    "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                    .text(appID), .integer(Int64(count)), .integer(bytes))
            }
            if scannedThrough == nil, identifier.isHard {
                for table in ["event_claim", "app_user"] {
                    try events.run(
                        "DELETE FROM \(table) WHERE app_id = ?1 AND user_id = ?2", .text(appID),
                        .text(identifier.value))
                }
            }
            return (count, scannedThrough)
        }
    }

    /// Deletes a part of a profile in one transaction. Returns whether the profile is completely deleted.
    private static func deletePiece(
        ofProfile profile: String, _ events: SQLiteConnection
    ) throws -> Bool {
        try events.transaction {
            let bytes =
                try events.first("SELECT bytes FROM customer WHERE id = ?1", .text(profile)) { $0.int64(0) }
                ?? 0
            // Deletes fewer rows at a time from a large profile, because each row may be long.
            return try CustomerWriter.delete(
                profile, rows: bytes > bytesPerCommit ? 8 : rowsPerCommit, events)
        }
    }

    /// Deletes samples by the request's user and by the token's `sub`, because a request may have another user's token.
    private static func deleteSamples(
        of user: String, in appID: String, _ analytics: SQLiteConnection
    ) throws -> Int {
        try analytics.run(
            """
            DELETE FROM sample WHERE app_id = ?1 AND (user_id = ?2
                OR json_extract(iif(json_valid(claims), claims, '{}'), '$.sub') = ?2)
            """, .text(appID), .text(user))
        let samples = analytics.changes
        try analytics.run(
            "DELETE FROM failed_user_hour WHERE app_id = ?1 AND user = ?2", .text(appID),
            .integer(Int64(bitPattern: DistinctCounter.hash(user))))
        return samples
    }

    /// Nil when the file does not exist or is empty, because no gateway has stored anything yet.
    private func writer(of file: SQLiteReaders) throws(GatewayError) -> SQLiteConnection? {
        guard file.isThere else { return nil }
        return try GatewayError.storing { try SQLiteConnection(path: file.path) }
    }
}
