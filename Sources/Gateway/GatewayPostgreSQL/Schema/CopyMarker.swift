internal import GatewayStorage

/// Marks a database into which data is being copied, until the copy is complete.
enum CopyMarker {
    static func isThere(_ connection: PostgreSQLConnection) throws -> Bool {
        try connection.first("SELECT to_regclass('countersign.\(UnfinishedCopy.table)') IS NOT NULL") {
            $0.int(0) != 0
        } == true
    }

    static func check(_ connection: PostgreSQLConnection) throws {
        if try isThere(connection) { throw UnfinishedCopy.rejection }
    }
}
