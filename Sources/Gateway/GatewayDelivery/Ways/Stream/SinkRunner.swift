internal import CountersignCore
internal import Foundation
package import GatewayModel
internal import GatewayObservability
package import GatewayStorage

/// Publishes to all streams. Each has its own thread and connection, so a slow or unavailable stream delays
/// neither others nor requests that store events.
package final class SinkRunner: Sendable {
    private struct State {
        var workers: BytewiseDictionary<SinkWorker> = [:]
        /// The version of the control database that the workers were created from.
        var version: Int64?
        var nextLook: Int64 = .min
        /// Streams for which a lag alert was sent and that have not caught up.
        var lagging: BytewiseSet = []
    }

    private static let lagPauseMilliseconds: Int64 = 10_000
    /// The maximum time to wait for all workers to end, because a server may not respond.
    private static let longestEnd = DispatchTimeInterval.seconds(3)

    private let directory: AppDirectory
    private let dependencies: SinkDependencies
    private let state = Lock(State())
    /// Serializes access to the control database.
    private let queue = DispatchQueue(label: "sinks")
    private let ticker: Ticker
    private let hasThreads: Bool

    /// Without threads, the caller does their work with ``turn(_:)``.
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

    /// Stops publishing and releases all leases.
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

    /// Checks once for changes and lag.
    package func look() { queue.sync { lookNow() } }

    /// Does one turn of a stream's thread. Returns the milliseconds until the next turn; nil for an unknown
    /// stream.
    package func turn(_ key: String) -> Int64? { state.withLock { $0.workers[key] }?.turn() }

    /// The number of published messages and the state of each stream.
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

    /// Loads changes by operators.
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

    /// Each stream has a consumer, so that retention waits for it and its lag is measured. The consumer is
    /// created with the stream. This repairs the state after a crash and deletes consumers of deleted
    /// streams.
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

    /// Sends one alert when a stream's lag exceeds its limit.
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
            // Only after the alert is stored, so that a failure is retried.
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
