package import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Stores the leases and the progress of sinks in `sinks.sqlite`.
///
/// The lease of a sink prevents two relays from publishing to a stream at the same time. It only avoids
/// contention. The stream ensures correctness, because it rejects messages out of sequence, even from a relay
/// with an expired lease.
package final class SinkStateStore: Sendable {
    package static let fileName = "sinks.sqlite"
    /// The duration of a lease without renewal.
    package static let leaseMilliseconds: Int64 = 4_000

    private static let migrations = [
        """
        CREATE TABLE sink_state (
            sink TEXT PRIMARY KEY,
            holder TEXT,
            until_ms INTEGER NOT NULL DEFAULT 0,
            epoch INTEGER NOT NULL DEFAULT 0,
            mark_seq INTEGER,
            stream_seq INTEGER NOT NULL DEFAULT 0,
            mark_ms INTEGER,
            error TEXT,
            reason TEXT,
            failing_since_ms INTEGER
        ) STRICT, WITHOUT ROWID;
        """
    ]

    private let database: any SQLDatabase

    /// Opens or creates the file. Throws `storage`.
    package convenience init(path: String, at now: Date) throws(GatewayError) {
        self.init(
            try SQLiteWriter(path: path, pragmas: SQLiteWriter.shortLog, Self.migrations, at: now))
    }

    /// Uses a database with the tables of `sinks.sqlite`.
    package init(_ database: any SQLDatabase) {
        self.database = database
    }

    /// Takes or renews a sink's lease. False while another relay holds it. Throws `storage`.
    package func lease(_ sink: String, by holder: String, at milliseconds: Int64) throws(GatewayError) -> Bool
    {
        try database.write(alone: false) { connection in
            try connection.run(
                "INSERT INTO sink_state (sink) VALUES (?1) ON CONFLICT DO NOTHING", .text(sink))
            // A deadline beyond the maximum was set by a clock that was ahead.
            try connection.run(
                """
                UPDATE sink_state SET holder = ?2, until_ms = ?3 + ?4
                WHERE sink = ?1 AND (holder IS NULL OR holder = ?2 OR until_ms <= ?3 OR until_ms > ?3 + ?4)
                """, .text(sink), .text(holder), .integer(milliseconds), .integer(Self.leaseMilliseconds))
            return connection.changes > 0
        }
    }

    /// Ends a lease, so that another relay can take it immediately. Throws `storage`.
    package func release(_ sink: String, by holder: String) throws(GatewayError) {
        try database.write(alone: false) { connection in
            try connection.run(
                "UPDATE sink_state SET holder = NULL, until_ms = 0 WHERE sink = ?1 AND holder = ?2",
                .text(sink), .text(holder))
        }
    }

    /// Stores the progress of the relay that holds the lease. Throws `storage`.
    package func keep(_ state: SinkState, of sink: String, by holder: String) throws(GatewayError) {
        try database.write(alone: false) { connection in
            try connection.run(
                """
                UPDATE sink_state SET epoch = ?3, mark_seq = ?4, stream_seq = ?5, mark_ms = ?6, error = ?7,
                    reason = ?8, failing_since_ms = ?9
                WHERE sink = ?1 AND holder = ?2
                """, .text(sink), .text(holder), .integer(state.epoch), .optionalInteger(state.markSequence),
                .integer(state.streamSequence), .optionalInteger(state.markMilliseconds),
                .optionalText(state.error?.code.rawValue), .optionalText(state.error?.reason),
                .optionalInteger(state.failingSinceMilliseconds))
        }
    }

    /// The stored states, by the sink's key. Throws `storage`.
    package func states() throws(GatewayError) -> BytewiseDictionary<SinkState> {
        try database.read { try SinkState.all($0) }
    }

    /// Deletes the states of all other sinks. Throws `storage`.
    package func sweep(keeping sinks: BytewiseSet) throws(GatewayError) {
        try database.write(alone: false) { connection in
            let known = try connection.all("SELECT sink FROM sink_state") { $0.text(0) }
            for sink in known where !sinks.contains(sink) {
                try connection.run("DELETE FROM sink_state WHERE sink = ?1", .text(sink))
            }
        }
    }
}

/// Reads the states of sinks, also while a gateway publishes.
package protocol SinkStates: Sendable {
    /// The states, by the sink's key. Throws `storage`.
    func states() throws(GatewayError) -> BytewiseDictionary<SinkState>
}

package struct SinkStateReader: SinkStates {
    let database: any SQLReader

    package init(_ database: any SQLReader) {
        self.database = database
    }

    package func states() throws(GatewayError) -> BytewiseDictionary<SinkState> {
        guard database.isThere else { return [:] }
        return try database.read { try SinkState.all($0) }
    }
}

extension SinkState {
    static func all(_ connection: any SQLConnection) throws -> BytewiseDictionary<SinkState> {
        let rows = try connection.all(
            """
            SELECT sink, epoch, mark_seq, stream_seq, mark_ms, error, reason, failing_since_ms FROM sink_state
            """
        ) { row in
            var state = SinkState(epoch: row.int64(1))
            state.markSequence = row.optionalInt64(2)
            state.streamSequence = row.int64(3)
            state.markMilliseconds = row.optionalInt64(4)
            state.error = row.optionalText(5).flatMap { SinkError.Code(rawValue: $0) }.map {
                SinkError($0, row.optionalText(6) ?? "")
            }
            state.failingSinceMilliseconds = row.optionalInt64(7)
            return (row.text(0), state)
        }
        return BytewiseDictionary(rows) { $1 }
    }
}
