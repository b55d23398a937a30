import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite(.timeLimit(.minutes(1)))
    struct ChannelTests {
        /// One end of a channel that polls only after a wake-up or a notification.
        private final class End: Sendable {
            let channel: PostgreSQLChannel
            let polled = DispatchSemaphore(value: 0)
            let heard = DispatchSemaphore(value: 0)
            let outgoing = Lock<[ClusterMessage]>([])
            let messages = Lock<[ClusterMessage]>([])

            init(_ id: String, _ database: TestDatabase) {
                channel = PostgreSQLChannel(id, database.settings, pauseMilliseconds: .max)
                channel.start(
                    take: { [self] in
                        defer { polled.signal() }
                        return outgoing.withLock { outgoing in
                            defer { outgoing = [] }
                            return outgoing
                        }
                    },
                    receive: { [self] message in
                        messages.withLock { $0.append(message) }
                        heard.signal()
                    }, isBusy: { false })
                // A channel listens for notifications before its first poll.
                polled.wait()
            }

            func send(_ message: ClusterMessage) {
                outgoing.withLock { $0 = [message] }
                channel.wake()
            }
        }

        @Test(arguments: [ClusterMessage.Kind.watch, .question, .answer])
        func requestsToOtherGatewaysArriveAtOnce(kind: ClusterMessage.Kind) throws {
            try TestDatabase.use { database in
                let (one, other) = (End("one", database), End("other", database))
                defer { for end in [one, other] { end.channel.stop() } }
                one.send(ClusterMessage(kind, ["a": 1]))
                #expect(other.heard.wait(timeout: .now() + 10) == .success, "no notification arrived")
                #expect(other.messages.withLock { $0 } == [ClusterMessage(kind, ["a": 1])])
            }
        }

        /// Verdicts come up to a thousand times a second, and commits with NOTIFY wait for each other.
        @Test func verdictsCauseNoNotification() throws {
            try TestDatabase.use { database in
                let end = End("one", database)
                defer { end.channel.stop() }
                let listener = try database.connect()
                try listener.execute("LISTEN \(ClusterMessages.channel)")
                func isNotified(after kind: ClusterMessage.Kind) throws -> Bool {
                    end.send(ClusterMessage(kind, ["a": 1]))
                    end.polled.wait()
                    // The second poll begins only after the message is sent.
                    end.channel.wake()
                    end.polled.wait()
                    try listener.execute("SELECT 1")
                    return !listener.notifications().isEmpty
                }
                #expect(try !isNotified(after: .verdicts))
                #expect(try isNotified(after: .watch))
            }
        }
    }
}
