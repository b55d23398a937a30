package import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Stores attempts to deliver to webhooks. A running gateway writes `webhooks.sqlite`; commands only clear responses.
package final class DeliveryStore: AppData, Sendable {
    package static let fileName = "webhooks.sqlite"
    /// The maximum number of stored attempts of an endpoint.
    package static let mostOfEndpoint = 200
    package static let keptDays = 14

    package static let migrations = [
        """
        CREATE TABLE progress (
            endpoint_id TEXT PRIMARY KEY,
            committed_seq INTEGER NOT NULL,
            message_id TEXT,
            through_seq INTEGER,
            failures INTEGER NOT NULL,
            failing_since_ms INTEGER,
            next_ms INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE delivery (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            endpoint_id TEXT NOT NULL,
            message_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            first_seq INTEGER,
            last_seq INTEGER,
            events INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            at_ms INTEGER NOT NULL,
            duration_ms INTEGER NOT NULL,
            status INTEGER,
            error TEXT,
            answer TEXT NOT NULL
        ) STRICT;
        CREATE INDEX delivery_of_endpoint ON delivery (endpoint_id, seq);
        """,
        """
        ALTER TABLE progress ADD COLUMN digest TEXT;
        ALTER TABLE progress ADD COLUMN is_after_gap INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE progress ADD COLUMN revision INTEGER;
        """,
    ]

    private let database: any SQLDatabase

    package convenience init(path: String, at now: Date) throws(GatewayError) {
        self.init(
            try SQLiteWriter(
                path: path, pragmas: SQLiteWriter.shortLog + "; PRAGMA secure_delete = ON", Self.migrations,
                at: now))
    }

    package init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// The progress of endpoints that an earlier version stored in this database, by the endpoint's id.
    package func earlierProgress() throws(GatewayError) -> BytewiseDictionary<DeliveryProgress> {
        try database.read { connection in
            let rows = try connection.all(
                """
                SELECT endpoint_id, committed_seq, message_id, through_seq, failures, failing_since_ms, next_ms,
                    digest, is_after_gap, revision
                FROM progress
                """
            ) { row in
                var progress = DeliveryProgress(committed: row.int64(1))
                progress.messageID = row.optionalText(2)
                progress.through = row.optionalInt64(3)
                progress.failures = row.int(4)
                progress.failingSinceMilliseconds = row.optionalInt64(5)
                progress.nextMilliseconds = row.int64(6)
                progress.digest = row.optionalText(7)
                progress.gap = EventGap(isOpen: row.int(8) != 0)
                progress.revision = row.optionalInt64(9)
                return (row.text(0), progress)
            }
            return BytewiseDictionary(rows) { $1 }
        }
    }

    package func add(_ record: DeliveryRecord) throws(GatewayError) {
        try database.write(alone: false) { try Self.add(record, $0) }
    }

    private static func add(_ record: DeliveryRecord, _ connection: any SQLConnection) throws {
        try connection.run(
            """
            INSERT INTO delivery (endpoint_id, message_id, kind, first_seq, last_seq, events, attempt, at_ms,
                duration_ms, status, error, answer)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
            """, .text(record.endpointID), .text(record.messageID), .text(record.kind.rawValue),
            .optionalInteger(record.firstSequence), .optionalInteger(record.lastSequence),
            .integer(Int64(record.events)), .integer(Int64(record.attempt)), .integer(record.atMilliseconds),
            .integer(record.durationMilliseconds), .optionalInteger(record.status.map { Int64($0) }),
            .optionalText(record.error), .text(record.answer))
        try connection.run(
            """
            DELETE FROM delivery WHERE endpoint_id = ?1 AND seq <= (
                SELECT seq FROM delivery WHERE endpoint_id = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)
            """, .text(record.endpointID), .integer(Int64(mostOfEndpoint)))
    }

    /// Deletes stored responses with any of these texts, because a response may repeat the delivered content. Returns
    /// the number of deleted responses. With `asWords`, ignores a text that is a part of a longer word.
    package func clearAnswers(
        with texts: [String], asWords: Bool, of endpointIDs: [String]
    ) throws(GatewayError) -> Int {
        let texts = texts.map { Array($0.utf8) }
        func isPartOfWord(_ byte: UInt8?) -> Bool {
            byte.map { $0 >= 0x80 || $0.isASCIIAlphanumeric() } ?? false
        }
        func has(_ text: [UInt8], _ answer: [UInt8]) -> Bool {
            answer.ranges(of: text).contains { range in
                !asWords
                    || !isPartOfWord(answer[..<range.lowerBound].last)
                        && !isPartOfWord(answer[range.upperBound...].first)
            }
        }
        var count = 0
        for endpointID in endpointIDs {
            count += try database.write(alone: false) { connection in
                let answers = try connection.all(
                    "SELECT seq, answer FROM delivery WHERE endpoint_id = ?1 AND answer <> ''",
                    .text(endpointID)
                ) { ($0.int64(0), Array($0.text(1).utf8)) }
                let found = answers.filter { _, answer in texts.contains { has($0, answer) } }
                for (sequence, _) in found {
                    try connection.run("UPDATE delivery SET answer = '' WHERE seq = ?1", .integer(sequence))
                }
                return found.count
            }
        }
        return count
    }

    /// Deletes the attempts of an app's alert webhook. ``sweep(keeping:at:)`` deletes attempts of deleted endpoints.
    package func erase(appID: String) throws(GatewayError) {
        try database.write(alone: false) { connection in
            let id = DeliveryRecord.alerts(of: appID)
            try connection.run("DELETE FROM delivery WHERE endpoint_id = ?1", .text(id))
        }
    }

    /// Deletes expired attempts and all attempts of deleted endpoints. An app's alert webhook counts as an endpoint.
    package func sweep(keeping endpointIDs: BytewiseSet, at milliseconds: Int64) throws(GatewayError) {
        try database.write(alone: false) { connection in
            try connection.run(
                "DELETE FROM delivery WHERE at_ms < ?1",
                .integer(milliseconds - Int64(Self.keptDays) * 86_400_000))
            let known = try connection.all("SELECT DISTINCT endpoint_id FROM delivery") { $0.text(0) }
            for id in known where !endpointIDs.contains(id) {
                try connection.run("DELETE FROM delivery WHERE endpoint_id = ?1", .text(id))
            }
        }
    }
}
