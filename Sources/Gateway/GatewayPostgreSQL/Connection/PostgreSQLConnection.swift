internal import CPostgreSQL
internal import CountersignCore
package import CountersignSQLite
internal import Foundation
package import GatewayStorage

/// A connection to a PostgreSQL server, for one thread at a time. A statement that misses its deadline closes the
/// connection.
package final class PostgreSQLConnection: SQLConnection {
    private struct Statement: Hashable {
        let sql: String
        let types: [Oid]
    }

    /// The number of prepared statements at which all are deallocated. The gateway usually uses fewer.
    private static let mostStatements = 500

    let handle: OpaquePointer
    private let deadlineMilliseconds: Int
    private var prepared: [Statement: String] = [:]
    package private(set) var changes = 0
    /// Set when a statement changes a row; reset by the caller.
    var hasChanged = false
    /// The base of event positions (see ``EventHorizon/base(_:)``), once it was read.
    var base: Int64?
    var tokenKey: (@Sendable () throws -> TokenKeySeal)?
    var kind: DataKind?

    package init(_ settings: PostgreSQLSettings) throws {
        let words = settings.words
        let names = words.map { strdup($0.0) } + [nil]
        let values = words.map { strdup($0.1) } + [nil]
        defer { for text in names + values { free(text) } }
        let made = names.map { UnsafePointer($0) }.withUnsafeBufferPointer { names in
            values.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
                // The argument 1 makes libpq expand a connection string in `dbname`.
                PQconnectdbParams(names.baseAddress, values.baseAddress, 1)
            }
        }
        guard let made else { throw PostgreSQLError.lost("out of memory") }
        guard PQstatus(made) == CONNECTION_OK else {
            let error = PostgreSQLError(nil, of: made)
            PQfinish(made)
            throw PostgreSQLError.lost(error.message)
        }
        handle = made
        deadlineMilliseconds = settings.statementMilliseconds + 5_000
        // Discards notices, which libpq would print.
        PQsetNoticeProcessor(made, { _, _ in }, nil)
        // If this throws, `deinit` closes the connection, because all properties are set.
        try execute(settings.sessionScript)
    }

    deinit { PQfinish(handle) }

    var serverEncoding: String {
        PQparameterStatus(handle, "server_encoding").map { String(cString: $0) } ?? "unknown"
    }

    /// Whether the connection is usable, as far as known without a query.
    var isSound: Bool {
        guard PQstatus(handle) == CONNECTION_OK, PQtransactionStatus(handle) == PQTRANS_IDLE else {
            return false
        }
        // Without a query, the server sends only asynchronous messages, or closes the connection.
        var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        while poll(&descriptor, 1, 0) > 0 {
            guard PQconsumeInput(handle) == 1, PQstatus(handle) == CONNECTION_OK else { return false }
        }
        return true
    }

    package func execute(_ sql: String) throws {
        guard PQsendQuery(handle, sql) == 1 else { throw PostgreSQLError(nil, of: handle) }
        try finish { note($0) }
    }

    /// Accepts the placeholders of SQLite and PostgreSQL. Stops when `body` returns false.
    package func each(
        _ sql: String, _ values: [SQLValue], _ body: (any SQLRow) throws -> Bool
    ) throws {
        try each(sql, Parameters(values)) { row in try body(row) }
    }

    package var forUpdate: String { " FOR UPDATE" }

    package func appTables() throws -> [AppTable] { try appTables(of: kind) }

    /// The tables for this kind of data with a column `app_id`; nil selects tables of events, consumers and customers.
    func appTables(of kind: DataKind?) throws -> [AppTable] {
        let columns = try all(
            """
            SELECT relname, attname, attnum = ANY (conkey) FROM pg_class
            JOIN pg_attribute ON attrelid = pg_class.oid
            JOIN pg_constraint ON conrelid = pg_class.oid AND contype = 'p'
            WHERE relnamespace = 'countersign'::regnamespace AND NOT relispartition AND attnum > 0
            AND NOT attisdropped AND (attname = ?1 OR attnum = ANY (conkey)) ORDER BY relname, attnum
            """, .text(AppTable.column)
        ) { (table: $0.text(0), column: $0.text(1), isKey: $0.int(2) > 0) }
        return BytewiseDictionary(grouping: columns, by: \.table)
            .filter {
                $0.value.contains { $0.column == AppTable.column } && DataKind.of(table: $0.key) == kind
            }
            .map { name, columns in
                AppTable(name: name, key: columns.filter(\.isKey).map { "\"\($0.column)\"" })
            }
            .sorted { $0.name < $1.name }
    }

    func each(_ sql: String, _ parameters: Parameters, _ body: (PostgreSQLRow) throws -> Bool) throws {
        let name = try prepare(sql, parameters.types)
        let isSent = parameters.withPointers { values, lengths, formats in
            PQsendQueryPrepared(handle, name, Int32(parameters.count), values, lengths, formats, 0)
        }
        guard isSent == 1 else { throw PostgreSQLError(nil, of: handle) }
        try finish { result in
            note(result)
            for index in 0..<PQntuples(result)
            where try !body(PostgreSQLRow(result: result, index: index)) { return }
        }
    }

    /// The outcome is unknown if the connection is lost during the commit.
    package func transaction<Value>(_ begin: String = "BEGIN", _ body: () throws -> Value) throws -> Value {
        try execute(begin)
        do {
            let value = try body()
            try execute("COMMIT")
            return value
        } catch {
            if PQtransactionStatus(handle) != PQTRANS_IDLE { try? execute("ROLLBACK") }
            throw error
        }
    }

    func committing<Value>(_ body: () throws -> Value) throws -> Value {
        try retrying { try transaction { try body() } }
    }

    /// Runs `body`. After a conflict with another transaction, runs `body` again, at most 5 times in total.
    func retrying<Value>(_ body: () throws -> Value) throws -> Value {
        for _ in 1..<5 {
            do {
                return try body()
            } catch let error as PostgreSQLError where error.isRetryable {
                continue
            }
        }
        return try body()
    }

    /// Channels of notifications read since the last call.
    func notifications() -> BytewiseSet {
        var channels: BytewiseSet = []
        while let notification = PQnotifies(handle) {
            channels.insert(String(cString: notification.pointee.relname))
            PQfreemem(notification)
        }
        return channels
    }

    /// Reads and discards pending notifications. The next query reports a closed connection.
    func takeNotifications() {
        _ = PQconsumeInput(handle)
        _ = notifications()
    }

    var socket: Int32 { PQsocket(handle) }

    private func note(_ result: OpaquePointer) {
        changes = PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0
        guard changes > 0, let status = PQcmdStatus(result) else { return }
        if status.pointee != CChar(UInt8(ascii: "S")) { hasChanged = true }
    }

    private func prepare(_ sql: String, _ types: [Oid]) throws -> String {
        let statement = Statement(sql: sql, types: types)
        if let name = prepared[statement] { return name }
        if prepared.count >= Self.mostStatements {
            try execute("DEALLOCATE ALL")
            prepared = [:]
        }
        let name = "s\(prepared.count)"
        guard PQsendPrepare(handle, name, Placeholders.numbered(sql), Int32(types.count), types) == 1 else {
            throw PostgreSQLError(nil, of: handle)
        }
        try finish { _ in }
        prepared[statement] = name
        return name
    }

    // MARK: Waiting

    /// Reads all results of a query, and then throws the first error.
    private func finish(_ body: (OpaquePointer) throws -> Void) throws {
        let deadline = DispatchTime.now().uptimeNanoseconds + UInt64(deadlineMilliseconds) * 1_000_000
        var failure: (any Error)?
        while let result = try nextResult(until: deadline) {
            defer { PQclear(result) }
            switch PQresultStatus(result) {
            case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
                guard failure == nil else { continue }
                do { try body(result) } catch { failure = error }
            default: failure = failure ?? PostgreSQLError(result, of: handle)
            }
        }
        if let failure { throw failure }
        guard PQstatus(handle) == CONNECTION_OK else { throw PostgreSQLError(nil, of: handle) }
    }

    /// The next result; nil after the last. Throws after the deadline.
    func nextResult(until deadline: UInt64) throws -> OpaquePointer? {
        while true {
            let unsent = PQflush(handle)
            guard unsent >= 0 else { throw PostgreSQLError(nil, of: handle) }
            if unsent == 0, PQisBusy(handle) == 0 { return PQgetResult(handle) }
            try wait(until: deadline, sending: unsent > 0)
            guard PQconsumeInput(handle) == 1 else { throw PostgreSQLError(nil, of: handle) }
        }
    }

    private func wait(until deadline: UInt64, sending: Bool) throws {
        let now = DispatchTime.now().uptimeNanoseconds
        let left = deadline > now ? Int32((deadline - now) / 1_000_000) + 1 : 0
        var descriptor = pollfd(
            fd: PQsocket(handle), events: Int16(POLLIN) | (sending ? Int16(POLLOUT) : 0), revents: 0)
        let ready = poll(&descriptor, 1, left)
        if ready < 0, errno == EINTR { return }
        guard ready > 0 else {
            // Prevents a late response from being taken for the response to another query.
            shutdown(PQsocket(handle), Int32(SHUT_RDWR))
            throw PostgreSQLError.lost("the server has not answered in time")
        }
    }
}
