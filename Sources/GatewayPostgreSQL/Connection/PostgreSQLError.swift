internal import CPostgreSQL
internal import CountersignCore
internal import GatewayStorage

/// What PostgreSQL or the way to it reported: its words and its code.
///
/// Bound values are never part of it: PostgreSQL's detail, hint and context, which may quote them, are left out.
package struct PostgreSQLError: StorageError, CustomStringConvertible {
    /// The SQLSTATE, five characters; `08006` where the connection failed before the server had said anything.
    package let sqlState: String
    package let message: String
    /// True when the connection is of no use any more. What a commit did that it was lost in is unknown.
    package let isConnectionLost: Bool

    package init(sqlState: String, message: String, isConnectionLost: Bool = false) {
        self.sqlState = sqlState
        self.message = message
        self.isConnectionLost = isConnectionLost
    }

    /// From a result that is none, or one that reports an error.
    init(_ result: OpaquePointer?, of connection: OpaquePointer) {
        let isLost = PQstatus(connection) != CONNECTION_OK
        let state = result.flatMap { PQresultErrorField($0, Self.sqlStateField) }.map { String(cString: $0) }
        let primary = result.flatMap { PQresultErrorField($0, Self.messageField) }.map { String(cString: $0) }
        sqlState = state ?? "08006"
        message =
            primary
            ?? String(cString: PQerrorMessage(connection)).split(separator: "\n").first.map { String($0) }
            ?? "the connection was lost"
        isConnectionLost = isLost || state?.hasPrefix("57P") == true || state?.hasPrefix("08") == true
    }

    // Macros of characters, which are not imported (postgres_ext.h).
    private static let sqlStateField = Int32(UInt8(ascii: "C"))
    private static let messageField = Int32(UInt8(ascii: "M"))

    static func lost(_ message: String) -> PostgreSQLError {
        PostgreSQLError(sqlState: "08006", message: message, isConnectionLost: true)
    }

    /// True when the disk, or the quota on it, is full.
    package var isFull: Bool { sqlState == "53100" }

    /// True when the same transaction may succeed if it is tried again.
    package var isRetryable: Bool { sqlState == "40001" || sqlState == "40P01" }

    /// True when a value can never be stored: a text that PostgreSQL does not take, a number that is too large, or a
    /// row that breaks a rule of the schema.
    package var isConstraint: Bool {
        sqlState.hasPrefix("22") || sqlState.hasPrefix("23") || sqlState == "54000"
    }

    package var description: String { "PostgreSQL error \(sqlState): \(message)" }
}
