internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// One gateway's end of the channel: a thread with a connection of its own that sends and hears by a table. It looks there
/// when it is notified of something, and after a pause.
final class PostgreSQLChannel: ClusterChannel {
    private static let busyMilliseconds: Int32 = 200
    private static let rememberedMilliseconds: Int64 = 600_000

    private let id: String
    private let settings: PostgreSQLSettings
    private let pauseMilliseconds: Int32
    private let bell = Bell()
    private let isStopping = Lock(false)
    private let wasStarted = Lock(false)
    private let ended = CountingSemaphore(value: 0)

    /// What the thread has from one look to the next.
    private struct Looks {
        var connection: PostgreSQLConnection?
        var sent: Int64 = 0
        var hasSent = false
        /// The number of the last message of each gateway, and when it was heard; nil before the first look, which hears nothing.
        var known: BytewiseDictionary<(number: Int64, at: Int64)>?
    }

    init(_ id: String, _ settings: PostgreSQLSettings, pauseMilliseconds: Int32 = 1_000) {
        self.id = id
        self.settings = settings
        self.pauseMilliseconds = pauseMilliseconds
    }

    func start(
        take: @escaping @Sendable () -> [ClusterMessage], hear: @escaping @Sendable (ClusterMessage) -> Void,
        isBusy: @escaping @Sendable () -> Bool
    ) {
        wasStarted.withLock { $0 = true }
        let thread = Thread { [self] in
            var looks = Looks()
            while !isStopping.withLock({ $0 }) {
                do {
                    try look(&looks, take, hear)
                } catch {
                    // What was to be sent is lost. The member's thread says that the database is gone.
                    looks.connection = nil
                }
                wait(looks.connection, milliseconds: isBusy() ? Self.busyMilliseconds : pauseMilliseconds)
            }
            if looks.hasSent, let connection = looks.connection {
                _ = try? ClusterMessages.forget(of: id, all: true, connection)
            }
            ended.signal()
        }
        thread.name = "cluster channel"
        thread.start()
    }

    func wake() { bell.ring() }

    func stop() {
        isStopping.withLock { $0 = true }
        guard wasStarted.withLock({ $0 }) else { return }
        bell.ring()
        // A server that does not answer notices by itself that the connection is gone.
        _ = ended.wait(until: .now() + 3)
    }

    private func wait(_ connection: PostgreSQLConnection?, milliseconds: Int32) {
        // It may have come with the answer to something else.
        if let connection, !connection.notifications().isEmpty { return }
        bell.wait(besides: connection?.socket, milliseconds: milliseconds)
        connection?.takeNotifications()
    }

    private func connect() throws -> PostgreSQLConnection {
        let connection = try PostgreSQLConnection(settings)
        try connection.execute("LISTEN \(ClusterMessages.channel)")
        return connection
    }

    private func look(
        _ looks: inout Looks, _ take: () -> [ClusterMessage], _ hear: (ClusterMessage) -> Void
    ) throws {
        let connection = try looks.connection ?? connect()
        looks.connection = connection
        let heard = try ClusterMessages.heard(
            by: id, after: (looks.known ?? [:]).mapValues(\.number), connection)
        // Who has been silent for longer than messages are kept may be gone.
        let time = Uptime.milliseconds
        var known = (looks.known ?? [:]).filter { $0.value.at > time - Self.rememberedMilliseconds }
        for (gateway, number, message) in heard {
            known[gateway] = (number, time)
            if let message, looks.known != nil, !isStopping.withLock({ $0 }) { hear(message) }
        }
        looks.known = known
        let messages = take()
        if !messages.isEmpty {
            // Counted before: whether a lost connection has sent them, nobody knows.
            let last = looks.sent
            looks.sent += Int64(messages.count)
            looks.hasSent = true
            try ClusterMessages.send(messages, of: id, after: last, connection)
        }
        if looks.hasSent {
            looks.hasSent = try ClusterMessages.forget(of: id, all: false, connection)
        }
    }
}
