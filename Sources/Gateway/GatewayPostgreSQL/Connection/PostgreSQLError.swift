internal import CPostgreSQL
internal import CountersignCore
internal import GatewayStorage

/// An error of PostgreSQL or of the connection. Omits detail, hint and context, which may quote bound values.
package struct PostgreSQLError: StorageError, CustomStringConvertible {
    /// The SQLSTATE of five characters; `08006` for errors of the connection.
    package let sqlState: String
    package let message: String
    /// Whether the connection is unusable. If so, the outcome of a commit in progress is unknown.
    package let isConnectionLost: Bool

    package init(sqlState: String, message: String, isConnectionLost: Bool = false) {
        self.sqlState = sqlState
        self.message = message
        self.isConnectionLost = isConnectionLost
    }

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

    // Swift does not import the macros `PG_DIAG_SQLSTATE` and `PG_DIAG_MESSAGE_PRIMARY` (postgres_ext.h).
    private static let sqlStateField = Int32(UInt8(ascii: "C"))
    private static let messageField = Int32(UInt8(ascii: "M"))

    static func lost(_ message: String) -> PostgreSQLError {
        PostgreSQLError(sqlState: "08006", message: message, isConnectionLost: true)
    }

    /// Whether the server's disk is full.
    package var isFull: Bool { sqlState == "53100" }

    package var isRetryable: Bool { sqlState == "40001" || sqlState == "40P01" }

    /// Whether the statement has a value that PostgreSQL can never store, or violates a constraint.
    package var isConstraint: Bool {
        sqlState.hasPrefix("22") || sqlState.hasPrefix("23") || sqlState == "54000"
    }

    package var description: String { "PostgreSQL error \(sqlState): \(message)" }
}
