internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// Connections that threads share: each has one to itself for as long as it needs it.
package final class PostgreSQLPool: Sendable {
    // A connection belongs to whoever took it out; the lock hands it over.
    private struct State: @unchecked Sendable {
        var idle: [PostgreSQLConnection] = []
        /// Until then nobody tries to connect: the last attempts have failed.
        var pausedUntil = DispatchTime(uptimeNanoseconds: 0)
        var failures = 0
        var lastError: PostgreSQLError?
    }

    package let settings: PostgreSQLSettings
    private let state = Lock(State())
    private let places: DispatchSemaphore

    /// At most so many connections are open at a time; who wants one more waits.
    package init(_ settings: PostgreSQLSettings, connections: Int) {
        self.settings = settings
        places = DispatchSemaphore(value: connections)
    }

    /// Runs `body` with a connection. Throws `PostgreSQLError` when there is none, and what `body` throws.
    package func use<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        guard places.wait(timeout: .now() + .milliseconds(settings.statementMilliseconds)) == .success else {
            throw PostgreSQLError(sqlState: "53300", message: "all connections to the database are in use")
        }
        defer { places.signal() }
        let connection = try take()
        defer { if connection.isSound { state.withLock { $0.idle.append(connection) } } }
        return try body(connection)
    }

    /// A connection of its own for somebody who keeps it, such as a writer. Throws `PostgreSQLError`.
    func connect() throws -> PostgreSQLConnection {
        let pause = state.withLock { $0.pausedUntil > .now() ? $0.lastError : nil }
        if let pause { throw pause }
        do {
            let connection = try PostgreSQLConnection(settings)
            state.withLock { $0.failures = 0 }
            return connection
        } catch {
            let error = error as? PostgreSQLError ?? PostgreSQLError.lost("\(error)")
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

    /// Closes those that nobody uses.
    package func close() {
        state.withLock { $0.idle = [] }
    }
}
