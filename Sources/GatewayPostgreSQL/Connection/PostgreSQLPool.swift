internal import CountersignCore
internal import Foundation
internal import GatewayModel
package import GatewayStorage

/// Connections that threads share: each has one to itself for as long as it needs it.
package final class PostgreSQLPool: Sendable {
    // A connection belongs to whoever took it out; the lock hands it over.
    private struct State: @unchecked Sendable {
        var idle: [PostgreSQLConnection] = []
        var load = DatabaseLoad()
        /// Until then nobody tries to connect: the last attempts have failed.
        var pausedUntil = DispatchTime(uptimeNanoseconds: 0)
        var failures = 0
        var lastError: PostgreSQLError?
    }

    package let settings: PostgreSQLSettings
    /// Reads the key that secrets are sealed with.
    let tokenKey: (@Sendable () throws -> TokenKeySeal)?
    private let state = Lock(State())
    private let places: CountingSemaphore
    private let limit: Int

    /// At most so many connections are open at a time; who wants one more waits. `first` is one that is open already.
    package init(
        _ settings: PostgreSQLSettings, connections: Int,
        tokenKey: (@Sendable () throws -> TokenKeySeal)? = nil, first: PostgreSQLConnection? = nil
    ) {
        self.settings = settings
        self.tokenKey = tokenKey
        places = CountingSemaphore(value: connections)
        limit = connections
        guard let first else { return }
        first.tokenKey = tokenKey
        state.withLock { $0.idle = [first] }
    }

    /// Runs `body` with a connection. Throws `PostgreSQLError` when there is none, and what `body` throws.
    package func use<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        guard places.wait(until: .now() + .milliseconds(settings.statementMilliseconds)) else {
            let error = PostgreSQLError(
                sqlState: "53300", message: "all connections to the database are in use")
            note(error)
            throw error
        }
        state.withLock { $0.load.connectionsInUse += 1 }
        defer {
            state.withLock { $0.load.connectionsInUse -= 1 }
            places.signal()
        }
        let connection = try take()
        defer { if connection.isSound { state.withLock { $0.idle.append(connection) } } }
        return try noting { try body(connection) }
    }

    /// Runs `body`, which uses a connection, and counts what the server refuses.
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

    /// A group of batches was written in so many attempts.
    func noteWrite(attempts: Int) {
        guard attempts > 1 else { return }
        state.withLock { $0.load.writeRetries += attempts - 1 }
    }

    /// What it does and what it has seen; it knows no partitions.
    var load: DatabaseLoad {
        var load = state.withLock { state in
            var load = state.load
            load.connectionsIdle = state.idle.count
            return load
        }
        load.connectionLimit = limit
        return load
    }

    /// A connection of its own for somebody who keeps it, such as a writer. Its statements may take so long; nil stands for what
    /// the others' may take. Throws `PostgreSQLError`.
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
                // 50 ms, 100 ms, and so on until 1.6 s.
                state.pausedUntil = .now() + .milliseconds(25 << min(state.failures, 6))
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
