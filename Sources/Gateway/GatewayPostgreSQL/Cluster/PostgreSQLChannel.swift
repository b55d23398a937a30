internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// A gateway's access to the messages, with its own thread. Polls their table after notifications and periodically.
final class PostgreSQLChannel: ClusterChannel {
    private static let busyMilliseconds: Int32 = 200
    private static let rememberedMilliseconds: Int64 = 600_000

    private let id: String
    private let settings: PostgreSQLSettings
    private let pauseMilliseconds: Int32
    private let wakeSignal = WakeSignal()
    private let isStopping = Lock(false)
    private let wasStarted = Lock(false)
    private let ended = CountingSemaphore(value: 0)

    private struct PollState {
        var connection: PostgreSQLConnection?
        var sent: Int64 = 0
        var hasSent = false
        /// The last message number of each gateway and the time of its receipt. Nil before the first poll,
        /// which ignores existing messages.
        var known: BytewiseDictionary<(number: Int64, at: Int64)>?
    }

    init(_ id: String, _ settings: PostgreSQLSettings, pauseMilliseconds: Int32 = 1_000) {
        self.id = id
        self.settings = settings
        self.pauseMilliseconds = pauseMilliseconds
    }

    func start(
        take: @escaping @Sendable () -> [ClusterMessage],
        receive: @escaping @Sendable (ClusterMessage) -> Void,
        isBusy: @escaping @Sendable () -> Bool
    ) {
        wasStarted.withLock { $0 = true }
        let thread = Thread { [self] in
            var state = PollState()
            while !isStopping.withLock({ $0 }) {
                do {
                    try poll(&state, take, receive)
                } catch {
                    // Messages from `take` are lost. The thread of ``PostgreSQLMember`` reports the failed database.
                    state.connection = nil
                }
                wait(state.connection, milliseconds: isBusy() ? Self.busyMilliseconds : pauseMilliseconds)
            }
            if state.hasSent, let connection = state.connection {
                _ = try? ClusterMessages.delete(of: id, all: true, connection)
            }
            ended.signal()
        }
        thread.name = "cluster channel"
        thread.start()
    }

    func wake() { wakeSignal.signal() }

    func stop() {
        isStopping.withLock { $0 = true }
        guard wasStarted.withLock({ $0 }) else { return }
        wakeSignal.signal()
        // The thread may be waiting for a server that does not respond, so the wait is limited.
        _ = ended.wait(until: .now() + 3)
    }

    private func wait(_ connection: PostgreSQLConnection?, milliseconds: Int32) {
        // libpq may have read notifications together with a result, and then the socket is not readable.
        if let connection, !connection.notifications().isEmpty { return }
        wakeSignal.wait(besides: connection?.socket, milliseconds: milliseconds)
        connection?.takeNotifications()
    }

    private func connect() throws -> PostgreSQLConnection {
        let connection = try PostgreSQLConnection(settings)
        try connection.execute("LISTEN \(ClusterMessages.channel)")
        return connection
    }

    private func poll(
        _ state: inout PollState, _ take: () -> [ClusterMessage], _ receive: (ClusterMessage) -> Void
    ) throws {
        let connection = try state.connection ?? connect()
        state.connection = connection
        let received = try ClusterMessages.received(
            by: id, after: (state.known ?? [:]).mapValues(\.number), connection)
        // Removes gateways that sent nothing for longer than messages are stored.
        let time = Uptime.milliseconds
        var known = (state.known ?? [:]).filter { $0.value.at > time - Self.rememberedMilliseconds }
        for (gateway, number, message) in received {
            known[gateway] = (number, time)
            if let message, state.known != nil, !isStopping.withLock({ $0 }) { receive(message) }
        }
        state.known = known
        let messages = take()
        if !messages.isEmpty {
            // Increments the number first, because the outcome of sending on a lost connection is unknown.
            let last = state.sent
            state.sent += Int64(messages.count)
            state.hasSent = true
            try ClusterMessages.send(messages, of: id, after: last, connection)
        }
        if state.hasSent {
            state.hasSent = try ClusterMessages.delete(of: id, all: false, connection)
        }
    }
}
