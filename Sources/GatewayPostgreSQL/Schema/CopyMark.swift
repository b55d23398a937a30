internal import GatewayStorage

/// The table of a database that a copy has begun to fill and not finished.
enum CopyMark {
    static func isThere(_ connection: PostgreSQLConnection) throws -> Bool {
        try connection.first("SELECT to_regclass('countersign.\(UnfinishedCopy.table)') IS NOT NULL") {
            $0.int(0) != 0
        } == true
    }

    /// Throws `conflict` when it is there.
    static func check(_ connection: PostgreSQLConnection) throws {
        if try isThere(connection) { throw UnfinishedCopy.refusal }
    }
}
