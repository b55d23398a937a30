internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

struct WayState: Sendable {
    let isPaused: Bool
    /// Nil until a gateway has started to deliver to this webhook, stream or folder of files.
    let progress: DeliveryProgress?
    let consumer: EventConsumer?
    /// The position after the last delivered event.
    let position: String?
    /// Hides the reason of a failure from a viewer, because the reason may contain paths of files.
    let mask: UserMask

    private var isFailing: Bool { progress.map { $0.failures > 0 } ?? false }

    static let fields: [JSONField<WayState>] = [
        .init("state", .choice(["active", "paused", "failing"])) {
            $0.isPaused ? "paused" : $0.isFailing ? "failing" : "active"
        },
        .init("position", \.position), .init("lag_events", \.consumer?.lag),
        .time("oldest_unread_ms", \.consumer?.oldestUnreadMilliseconds),
        .init("events_missed", .bool) { $0.consumer?.gap.isOpen ?? false },
        .init("failures", .count) { $0.progress?.failures ?? 0 },
        .time("failing_since_ms", \.progress?.failingSinceMilliseconds),
        .time("next_attempt_ms") { state in
            state.isPaused
                ? nil : state.progress.flatMap { $0.nextMilliseconds > 0 ? $0.nextMilliseconds : nil }
        },
        .time("last_success_ms", \.progress?.deliveredMilliseconds),
        .time("last_failure_ms", \.progress?.failedMilliseconds),
        .init("error", .nullable(.string)) {
            $0.isFailing && !$0.isPaused ? $0.progress?.failure?.code : nil
        },
        .init("reason", .nullable(.string)) { $0.mask.clientText($0.progress?.failure?.reason) },
    ]

    static func all(
        _ kind: EventConsumerID.Kind, of appID: String, mask: UserMask, _ consumers: any EventConsumers,
        _ log: any EventLog
    ) throws -> (_ name: String, _ isPaused: Bool) -> WayState {
        do {
            return try states(of: try consumers.all(kind, of: appID), kind, mask: mask, consumers, log)
        } catch let failure as ConsumerFailure where failure.code == .notFound {
            // No gateway has run on the data directory yet.
        } catch let error as GatewayError where error.code == .notFound {
        }
        return { _, isPaused in
            WayState(isPaused: isPaused, progress: nil, consumer: nil, position: nil, mask: mask)
        }
    }

    static func states(
        of found: [EventConsumer], _ kind: EventConsumerID.Kind, mask: UserMask,
        _ consumers: any EventConsumers, _ log: any EventLog
    ) throws -> (_ name: String, _ isPaused: Bool) -> WayState {
        let progress = try consumers.progress(kind)
        let positions = try log.positions()
        return { name, isPaused in
            let consumer = found.first { $0.id.name == name }
            // The position of the partition that is furthest behind.
            let position = consumer?.partitions.map(\.committed).min()
            return WayState(
                isPaused: isPaused, progress: consumer.flatMap { progress[$0.id] }, consumer: consumer,
                position: consumer.flatMap { consumer in
                    position.map { positions.text(after: $0, in: consumer.id.appID) }
                }, mask: mask)
        }
    }
}
