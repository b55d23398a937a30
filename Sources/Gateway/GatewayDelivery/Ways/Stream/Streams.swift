internal import CountersignCore
internal import Dispatch
package import GatewayModel
package import GatewayStorage

/// All streams, as configured in the control database.
package struct Streams: WayKind {
    package let kind = EventConsumerID.Kind.stream
    package let retry = Retry(first: 1, most: 30)
    package let gatherSeconds = 0.0
    /// Detects that a stream has lost messages.
    package let probeMilliseconds: Int64? = 10_000
    private let directory: AppDirectory
    private let earlier: EarlierStreams
    private let clock: @Sendable () -> Int64
    /// Makes a queue for each stream, because a stream blocks while it waits for its servers.
    private let makeRun: @Sendable () -> WayRun
    package let hasDuty: @Sendable () -> Bool
    private let connect: StreamConnect

    /// `clock` returns milliseconds of a monotonic clock.
    package init(
        _ directory: AppDirectory, earlier: EarlierStreams,
        hasDuty: @escaping @Sendable () -> Bool = { true },
        clock: @escaping @Sendable () -> Int64 = { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) },
        run: @escaping @Sendable () -> WayRun = { serialRun("stream") },
        connect: @escaping StreamConnect
    ) {
        self.directory = directory
        self.earlier = earlier
        self.clock = clock
        self.connect = connect
        makeRun = run
        self.hasDuty = hasDuty
    }

    package func routes() throws -> [DeliveryRoute] {
        try directory.streams.all().map(Self.route)
    }

    static func route(to settings: StreamSettings) -> DeliveryRoute {
        var route = DeliveryRoute(settings.consumer)
        route.holdDays = settings.holdDays
        route.isPaused = settings.pause != nil
        route.revision = settings.revision
        route.start = settings.startSequence
        route.epoch = settings.epoch
        route.alertSeconds = settings.alertSeconds
        route.settings = settings
        return route
    }

    package func open(_ id: EventConsumerID) -> any Way {
        StreamWay(connect: connect, clock: clock, run: makeRun())
    }

    package func earlierProgress() throws -> [EventConsumerID: DeliveryProgress] {
        let states = try earlier.states()
        let found = try directory.streams.all().compactMap { settings in
            states[settings.key].map { (settings.consumer, $0) }
        }
        return Dictionary(uniqueKeysWithValues: found)
    }

    package func sendLagAlert(
        _ consumer: EventConsumer, _ progress: DeliveryProgress, atMilliseconds now: Int64
    ) throws {
        let alert: JSONValue = [
            "type": "stream.lagging", "timestamp": .string(RFC3339.text(milliseconds: now)),
            "data": [
                "app": .string(consumer.id.appID), "stream": .string(consumer.id.name),
                "lag_events": .integer(Int64(consumer.lag)),
                "oldest_unread": consumer.oldestUnreadMilliseconds.map {
                    .string(RFC3339.text(milliseconds: $0))
                } ?? .null,
                "error": (progress.failures > 0 ? progress.failure?.code : nil).map { .string($0) } ?? .null,
            ],
        ]
        try directory.alerts.queue(alert, of: consumer.id.appID, at: now)
    }
}
