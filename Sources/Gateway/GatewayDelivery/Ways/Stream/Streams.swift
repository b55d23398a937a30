internal import CountersignCore
internal import Dispatch
package import GatewayModel
package import GatewayStorage

/// All streams, as configured in the control database.
package struct Streams: WayKind {
    package let kind = EventConsumerID.Kind.stream
    package let retry = Retry(first: 1, most: 30)
    package let gatherSeconds = 0.0
    /// A stream may have lost messages.
    package let probeMilliseconds: Int64? = 10_000
    private let directory: AppDirectory
    private let earlier: EarlierStreams
    private let clock: @Sendable () -> Int64
    private let makeRun: @Sendable () -> StreamRun
    private let duty: @Sendable () -> Bool
    private let connect: StreamConnect

    /// `clock` returns milliseconds of a monotonic clock.
    package init(
        _ directory: AppDirectory, earlier: EarlierStreams,
        hasDuty: @escaping @Sendable () -> Bool = { true },
        clock: @escaping @Sendable () -> Int64 = { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) },
        run: @escaping @Sendable () -> StreamRun = Streams.queue, connect: @escaping StreamConnect
    ) {
        self.directory = directory
        self.earlier = earlier
        self.clock = clock
        self.connect = connect
        makeRun = run
        duty = hasDuty
    }

    /// A queue for each stream, because a stream blocks while it waits for its servers.
    package static func queue() -> StreamRun {
        let queue = DispatchQueue(label: "stream")
        return { queue.async(execute: $0) }
    }

    package var hasDuty: Bool { duty() }

    package func routes() throws -> [DeliveryRoute] {
        try directory.streams.all().map { sink in
            var route = DeliveryRoute(sink.consumer)
            route.holdDays = sink.holdDays
            route.isPaused = sink.pause != nil
            route.revision = sink.revision
            route.start = sink.startSequence
            route.epoch = sink.epoch
            route.alertSeconds = sink.alertSeconds
            route.settings = sink
            return route
        }
    }

    package func open(_ route: DeliveryRoute) throws -> any Way {
        guard let sink = route.settings as? StreamSettings else {
            throw GatewayError(.invalid, "\(route.id.name) is not a stream")
        }
        return StreamWay(sink, connect: connect, clock: clock, run: makeRun())
    }

    package func change(_ way: any Way, to route: DeliveryRoute) {
        if let sink = route.settings as? StreamSettings { (way as? StreamWay)?.change(sink) }
    }

    package func earlierProgress() throws -> [EventConsumerID: DeliveryProgress] {
        let states = try earlier.states()
        let found = try directory.streams.all().compactMap { sink in
            states[sink.key].map { (sink.consumer, $0) }
        }
        return Dictionary(uniqueKeysWithValues: found)
    }

    package func removeEarlierProgress() throws { try earlier.removeAll() }

    package func tellLate(
        _ consumer: EventConsumer, _ progress: DeliveryProgress?, atMilliseconds now: Int64
    ) throws {
        let isFailing = progress.map { $0.failures > 0 } ?? false
        let alert: JSONValue = [
            "type": "sink.lagging", "timestamp": .string(RFC3339.text(milliseconds: now)),
            "data": [
                "app": .string(consumer.id.appID), "sink": .string(consumer.id.name),
                "lag_events": .integer(Int64(consumer.lag)),
                "oldest_unread": consumer.oldestUnreadMilliseconds.map {
                    .string(RFC3339.text(milliseconds: $0))
                } ?? .null,
                "error": (isFailing ? progress?.failure?.code : nil).map { .string($0) } ?? .null,
            ],
        ]
        try directory.alerts.tell(alert, of: consumer.id.appID, at: now)
    }
}
