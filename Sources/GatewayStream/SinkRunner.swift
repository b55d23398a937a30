internal import CountersignCore
internal import Foundation
package import GatewayModel
internal import GatewayObservability
package import GatewayStorage

/// Publishes to all sinks: a thread and a connection for each, so that a stream that is slow or away delays no other and no
/// request that stores events.
package final class SinkRunner: Sendable {
    private struct State {
        var workers: BytewiseDictionary<SinkWorker> = [:]
        /// The version of the control database that the workers were made at.
        var version: Int64?
        var nextLook: Int64 = .min
        /// Sinks whose app was told that they are behind, and not that this is over.
        var lagging: BytewiseSet = []
    }

    /// How often it looks how far sinks are behind.
    private static let lagPauseMilliseconds: Int64 = 10_000
    /// How long the end of all sinks together is waited for; a server that does not answer would delay it.
    private static let longestEnd = DispatchTimeInterval.seconds(3)

    private let directory: AppDirectory
    private let dependencies: SinkDependencies
    private let state = Lock(State())
    /// What is read from the control database and changed there happens here, one after the other.
    private let queue = DispatchQueue(label: "sinks")
    private let ticker: Ticker
    private let hasThreads: Bool

    /// Without threads of its own, ``turn(_:)`` does their work.
    package init(directory: AppDirectory, dependencies: SinkDependencies, hasThreads: Bool = true) {
        self.directory = directory
        self.dependencies = dependencies
        self.hasThreads = hasThreads
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    package func start() {
        look()
        ticker.start { [weak self] in self?.lookNow() }
    }

    /// Publishes nothing any more, and gives all leases back.
    package func stop() {
        ticker.stop()
        queue.sync {
            let workers = state.withLock { state in
                defer { state.workers = [:] }
                return Array(state.workers.values)
            }
            for worker in workers { worker.end() }
            let deadline = DispatchTime.now() + Self.longestEnd
            for worker in workers where hasThreads { worker.wait(until: deadline) }
            for worker in workers where !hasThreads { worker.leave() }
        }
    }

    /// Looks once at what has changed and who is behind.
    package func look() { queue.sync { lookNow() } }

    /// Does once what the thread of a sink would do. Returns the milliseconds for which there is nothing to do; nil for a sink
    /// that it does not know.
    package func turn(_ key: String) -> Int64? { state.withLock { $0.workers[key] }?.turn() }

    /// Messages that were published so far and whether that fails now, of each sink.
    package var counts: [(sink: EventSink, published: Int, isFailing: Bool)] {
        state.withLock { Array($0.workers.values) }.map { ($0.sink, $0.published, $0.isFailing) }
            .sorted { $0.sink.key < $1.sink.key }
    }

    // MARK: On the queue

    private func lookNow() {
        do {
            try reload()
            try alert()
        } catch {
            dependencies.log.note(.error, "sinks not read", [("detail", "\(error)")])
        }
    }

    /// Takes over what operators have changed.
    private func reload() throws {
        let version = try directory.version()
        guard version != state.withLock({ $0.version }) else { return }
        let sinks = try directory.sinks.all()
        try matchConsumers(sinks)
        let keys = BytewiseSet(sinks.map(\.key))
        let made: [SinkWorker] = state.withLock { state in
            for (key, worker) in state.workers where !keys.contains(key) {
                worker.end()
                state.workers[key] = nil
            }
            var made: [SinkWorker] = []
            for sink in sinks {
                if let worker = state.workers[sink.key] {
                    worker.take(over: sink)
                } else {
                    let worker = SinkWorker(sink, dependencies)
                    state.workers[sink.key] = worker
                    made.append(worker)
                }
            }
            state.lagging.formIntersection(keys)
            return made
        }
        for worker in made where hasThreads { worker.start() }
        try dependencies.store.sweep(keeping: keys)
        state.withLock { $0.version = version }
    }

    /// Sinks are consumers too, so that retention waits for them and their lag is counted. They are made with the sink; here
    /// what a crash in between has left is put right, and those of deleted sinks go.
    private func matchConsumers(_ sinks: [EventSink]) throws {
        let wanted = Dictionary(uniqueKeysWithValues: sinks.map { ($0.consumer, $0) })
        var present: Set<EventConsumerID> = []
        for consumer in try dependencies.consumers.all(.sink, of: nil) {
            if let sink = wanted[consumer.id], sink.consumerSettings == consumer.settings {
                present.insert(consumer.id)
            } else {
                try dependencies.consumers.delete(consumer.id)
            }
        }
        for (id, sink) in wanted where !present.contains(id) {
            _ = try dependencies.consumers.create(id, sink.consumerSettings, from: .after(sink.startSequence))
        }
    }

    /// Tells an app's webhook, once, that a sink is further behind than its bound.
    private func alert() throws {
        let now = dependencies.clock()
        let isDue = state.withLock { state in
            guard now >= state.nextLook, !state.workers.isEmpty else { return false }
            state.nextLook = now + Self.lagPauseMilliseconds
            return true
        }
        guard isDue else { return }
        let sinks = state.withLock { $0.workers.mapValues(\.sink) }
        let milliseconds = dependencies.milliseconds
        for consumer in try dependencies.consumers.all(.sink, of: nil) {
            guard let sink = sinks[consumer.id.appID + "/" + consumer.id.name] else { continue }
            let age = consumer.oldestUnreadMilliseconds.map { milliseconds - $0 } ?? 0
            let isLate = age > Milliseconds(seconds: sink.alertSeconds).count
            guard isLate else {
                state.withLock { _ = $0.lagging.remove(sink.key) }
                continue
            }
            guard !state.withLock({ $0.lagging.contains(sink.key) }) else { continue }
            dependencies.log.note(
                .error, "sink is behind",
                [("app", sink.appID), ("sink", sink.name), ("lag_events", String(consumer.lag))])
            try directory.alerts.tell(
                try alert(sink, consumer, at: milliseconds), of: sink.appID, at: milliseconds)
            // Only now, so that an alert that could not be kept is tried again.
            state.withLock { _ = $0.lagging.insert(sink.key) }
        }
    }

    private func alert(
        _ sink: EventSink, _ consumer: EventConsumer, at milliseconds: Int64
    ) throws -> JSONValue {
        let error = try dependencies.store.states()[sink.key]?.error
        return [
            "type": "sink.lagging", "timestamp": .string(RFC3339.text(milliseconds: milliseconds)),
            "data": [
                "app": .string(sink.appID), "sink": .string(sink.name),
                "lag_events": .integer(Int64(consumer.lag)),
                "oldest_unread": consumer.oldestUnreadMilliseconds.map {
                    .string(RFC3339.text(milliseconds: $0))
                } ?? .null,
                "error": (error?.code.rawValue).map { .string($0) } ?? .null,
            ],
        ]
    }
}
