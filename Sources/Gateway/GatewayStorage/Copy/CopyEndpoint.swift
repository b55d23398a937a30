package import CountersignCore
package import CountersignSQLite

/// A data directory or database as the source or target of a copy. Must be used by one thread.
package protocol CopyEndpoint: AnyObject {
    /// Throws `alreadyRunning` when a gateway uses the data directory or database.
    func checkStopped() throws

    func log() throws -> CopiedLog

    /// The highest number ever assigned in tables with automatic row numbers.
    func numbers() throws -> BytewiseDictionary<Int64>

    /// The columns by which rows of a table are ordered when read.
    func key(of table: CopyTable) -> [String]

    /// The rows after `lastKey`, with secrets decrypted. Empty after the last row.
    func rows(of table: CopyTable, after lastKey: [SQLValue], most: CopyGroup) throws -> [[SQLValue]]

    // MARK: Use as the target

    /// Marks the target as an unfinished copy, or resumes a copy of this log. Throws `conflict` if it has other data.
    func begin(_ log: CopiedLog, _ tables: [CopyTable]) throws

    /// The key of the last copied row, in these columns; empty before the first.
    func lastKey(in table: CopyTable, by key: [String]) throws -> [SQLValue]

    /// Writes the rows in one transaction.
    func write(_ rows: [[SQLValue]], to table: CopyTable) throws

    /// Completes the copy once all rows are written: row numbers, counters and indexes.
    func complete(_ log: CopiedLog, _ numbers: BytewiseDictionary<Int64>, _ tables: [CopyTable]) throws

    /// Removes the marker of an unfinished copy.
    func finish() throws
}

/// Limits for rows that are read at once and written in one transaction. The row that reaches a limit is included.
package struct CopyGroup: Sendable {
    package let rows: Int
    /// Bytes of texts and blobs.
    package let bytes: Int

    package static let standard = CopyGroup(rows: 500, bytes: 4 << 20)
}

/// The identity and end of an event log.
package struct CopiedLog: Sendable, Equatable {
    package let id: [UInt8]
    /// No event and no position has a higher sequence number.
    package let head: Int64

    package init(id: [UInt8], head: Int64) {
        self.id = id
        self.head = head
    }
}
