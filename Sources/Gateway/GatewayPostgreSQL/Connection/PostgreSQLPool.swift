internal import CountersignCore
internal import Foundation
internal import GatewayModel
package import GatewayStorage

/// A pool of connections. Each is used by one thread at a time.
package final class PostgreSQLPool: Sendable {
    // Unchecked, because only one thread uses a connection that was taken out of `idle`.
    private struct State: @unchecked Sendable {
        var idle: [PostgreSQLConnection] = []
        var load = DatabaseLoad()
        /// The end of the back-off after failed attempts to connect.
        var pausedUntil = DispatchTime(uptimeNanoseconds: 0)
        var failures = 0
        var lastError: PostgreSQLError?
    }

    private static let retry = RetryPolicy(baseDelay: 0.05, maximumDelay: 1.6)

    package let settings: PostgreSQLSettings
    private let tokenKey: (@Sendable () throws -> TokenKeySeal)?
    private let state = Lock(State())
    private let slots: CountingSemaphore
    private let limit: Int

    /// `connections` limits the connections in use; further callers wait. `first` is an open connection to reuse.
    package init(
        _ settings: PostgreSQLSettings, connections: Int,
        tokenKey: (@Sendable () throws -> TokenKeySeal)? = nil, first: PostgreSQLConnection? = nil
    ) {
        self.settings = settings
        self.tokenKey = tokenKey
        slots = CountingSemaphore(value: connections)
        limit = connections
        guard let first else { return }
        first.tokenKey = tokenKey
        state.withLock { $0.idle = [first] }
    }

    /// Runs `body` with a connection. Throws `PostgreSQLError` when no connection becomes available.
    package func use<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        guard slots.wait(until: .now() + .milliseconds(settings.statementMilliseconds)) else {
            let error = PostgreSQLError(
                sqlState: "53300", message: "all connections to the database are in use")
            note(error)
            throw error
        }
        state.withLock { $0.load.connectionsInUse += 1 }
        defer {
            state.withLock { $0.load.connectionsInUse -= 1 }
            slots.signal()
        }
        let connection = try take()
        defer { if connection.isSound { state.withLock { $0.idle.append(connection) } } }
        return try noting { try body(connection) }
    }

    func noting<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            if let error = error as? PostgreSQLError { note(error) }
            throw error
        }
    }

    private func note(_ error: PostgreSQLError) {
        state.withLock { $0.load.errors[String(error.sqlState.prefix(2)), default: 0] += 1 }
    }

    func noteWrite(attempts: Int) {
        guard attempts > 1 else { return }
        state.withLock { $0.load.writeRetries += attempts - 1 }
    }

    var load: DatabaseLoad {
        var load = state.withLock { state in
            var load = state.load
            load.connectionsIdle = state.idle.count
            return load
        }
        load.connectionLimit = limit
        return load
    }

    /// Opens a connection without taking a permit of the pool. Nil selects the default statement timeout.
    func connect(statementMilliseconds: Int? = nil) throws -> PostgreSQLConnection {
        let pause = state.withLock { $0.pausedUntil > .now() ? $0.lastError : nil }
        if let pause { throw pause }
        do {
            var settings = settings
            if let statementMilliseconds { settings.statementMilliseconds = statementMilliseconds }
            let connection = try PostgreSQLConnection(settings)
            connection.tokenKey = tokenKey
            state.withLock { $0.failures = 0 }
            return connection
        } catch {
            let error = error as? PostgreSQLError ?? PostgreSQLError.lost("\(error)")
            note(error)
            state.withLock { state in
                state.failures += 1
                state.lastError = error
                state.pausedUntil = .now() + Self.retry.delay(afterFailure: state.failures, fraction: 1)
                state.idle = []
            }
            throw error
        }
    }

    private func take() throws -> PostgreSQLConnection {
        while let connection = state.withLock({ $0.idle.popLast() }) {
            if connection.isSound { return connection }
        }
        return try connect()
    }
}
