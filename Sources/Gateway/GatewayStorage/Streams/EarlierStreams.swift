package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// The progress of streams that an earlier version stored in `sinks.sqlite`.
package struct EarlierStreams: Sendable {
    package static let fileName = "sinks.sqlite"

    private let database: (any SQLDatabase)?

    package init(path: String) throws(GatewayError) {
        guard FileManager.default.fileExists(atPath: path) else {
            database = nil
            return
        }
        database = try SQLiteWriter(path: path, pragmas: SQLiteWriter.shortLog, [Self.schema], at: Date())
    }

    package init(_ database: any SQLDatabase) {
        self.database = database
    }

    package static let schema = """
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

    /// The progress of each stream, by the key of its settings.
    package func states() throws(GatewayError) -> BytewiseDictionary<DeliveryProgress> {
        guard let database else { return [:] }
        let rows = try database.read { connection in
            try connection.all(
                "SELECT sink, mark_seq, epoch, stream_seq FROM sink_state WHERE mark_seq IS NOT NULL"
            ) { row in
                var progress = DeliveryProgress(committed: row.int64(1))
                progress.epoch = row.int64(2)
                progress.receiverSequence = row.int64(3)
                return (row.text(0), progress)
            }
        }
        return BytewiseDictionary(rows) { $1 }
    }
}
