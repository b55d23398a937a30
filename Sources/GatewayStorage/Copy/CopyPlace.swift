package import CountersignCore
package import CountersignSQLite

/// A data directory or a database, as a copy reads or fills it. Belongs to one thread.
package protocol CopyPlace: AnyObject {
    /// Throws `conflict` or `alreadyRunning` when a gateway runs on it.
    func checkStopped() throws

    /// What tells its log of events from others, and the highest number that was given in it.
    func log() throws -> CopiedLog

    /// The highest number that was ever given in tables that number their rows.
    func numbers() throws -> BytewiseDictionary<Int64>

    /// The columns in whose order this place reads a table.
    func key(of table: CopyTable) -> [String]

    /// The next rows, as they are without any seal: as many as make a group, and none after the last.
    func rows(of table: CopyTable, after reached: [SQLValue], most: CopyGroup) throws -> [[SQLValue]]

    // MARK: Being filled

    /// Marks it as the unfinished copy of a log, or goes on with one. Throws `conflict` when something else is there.
    func begin(_ log: CopiedLog, _ tables: [CopyTable]) throws

    /// The key of the last row that was copied, in these columns; empty before the first.
    func reached(in table: CopyTable, by key: [String]) throws -> [SQLValue]

    /// Adds rows in one transaction.
    func write(_ rows: [[SQLValue]], to table: CopyTable) throws

    /// Does what is left once every row is there.
    func complete(_ log: CopiedLog, _ numbers: BytewiseDictionary<Int64>, _ tables: [CopyTable]) throws

    /// Takes the mark away.
    func finish() throws
}

/// What is read at a time, and written in one transaction. It ends with the row that makes it full, so that one row always
/// fits.
package struct CopyGroup: Sendable {
    package let rows: Int
    /// Of texts and blobs.
    package let bytes: Int

    package static let standard = CopyGroup(rows: 500, bytes: 4 << 20)

    package init(rows: Int, bytes: Int) {
        self.rows = rows
        self.bytes = bytes
    }
}

/// A log of events, as a copy of it continues it.
package struct CopiedLog: Sendable, Equatable {
    package let id: [UInt8]
    /// Every event and every position has this number or a lower one.
    package let head: Int64

    package init(id: [UInt8], head: Int64) {
        self.id = id
        self.head = head
    }
}
