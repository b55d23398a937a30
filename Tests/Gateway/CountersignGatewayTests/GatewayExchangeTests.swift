import CountersignCore
import CountersignGatewayTesting
import Foundation
import Testing

@testable import CountersignGateway
@testable import GatewayIngest
@testable import GatewayModel
@testable import GatewayObservability
@testable import GatewayStorage

/// Messages between the gateways of a cluster.
@Suite(.timeLimit(.minutes(1)))
struct GatewayExchangeTests {
    /// A channel that polls only when the test calls it.
    private final class Channel: ClusterChannel {
        let wakes = Lock(0)
        private let ends = Lock<[@Sendable () -> [ClusterMessage]]>([])

        func start(
            take: @escaping @Sendable () -> [ClusterMessage],
            receive: @escaping @Sendable (ClusterMessage) -> Void, isBusy: @escaping @Sendable () -> Bool
        ) {
            ends.withLock { $0 = [take] }
        }

        func wake() { wakes.withLock { $0 += 1 } }
        func stop() {}

        func taken() -> [ClusterMessage] { ends.withLock { $0 }.flatMap { $0() } }
    }

    /// Otherwise the feed would miss the other gateways' verdicts until the next poll.
    @Test func otherGatewaysAreNotifiedOfAWatcher() throws {
        let place = try TestStorage()
        let storage = try place.open()
        let registry = AppRegistry(
            directory: try storage.openControl(as: .account), now: { Date(timeIntervalSince1970: 1_000) })
        let (channel, feed) = (Channel(), LiveFeed())
        let verifier = SampleVerifier(
            recorder: AnalyticsRecorder(), apps: registry, now: { Date(timeIntervalSince1970: 1_000) })
        let exchange = GatewayExchange(channel, gateways: { 2 }, feed, verifier, storage.analytics)
        exchange.start()
        #expect(channel.taken() == [])
        _ = feed.entries(after: nil)
        #expect(channel.wakes.withLock { $0 } == 1)
        #expect(channel.taken().map(\.kind) == [.watch])
        #expect(channel.taken() == [])
    }
}
