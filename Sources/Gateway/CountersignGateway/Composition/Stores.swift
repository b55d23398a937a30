internal import CountersignCore
internal import Foundation
internal import GatewayAdmin
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

struct Stores: Sendable {
    let events: any EventStore
    let consumers: any EventConsumers
    let customers: any CustomerStore
    let deliveries: DeliveryStore
    let analytics: AnalyticsStore

    init(
        in storage: any Storage, _ configuration: GatewayConfiguration, apps: AppRegistry,
        observability: Observability, alerts: ConsumerAlerts, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) {
        events = try storage.openEvents(
            EventStoreOptions(
                pendingBytes: configuration.limits.pendingBytes,
                diskFloorBytes: configuration.diskFloorBytes,
                observer: ObserverGroup(members: [observability.observer, alerts]),
                retention: { apps.rules }))
        consumers = storage.openConsumers(with: events, now: { Milliseconds(now()).count })
        customers = try storage.openCustomers()
        deliveries = try storage.openDeliveries()
        analytics = try storage.openAnalytics(from: observability.recorder, now: now) {
            [log = observability.log] in
            log.note(.error, "analytics not written", [("detail", $0)])
        }
    }

    /// Throws `storage` unless events can be written now. A full disk is only logged: requests that store get
    /// 503, while operators can delete data.
    func prove(_ log: GatewayLog) throws(GatewayError) {
        guard let failure = events.probe() else { return }
        let detail = "\(failure.summary): \(failure.detail)"
        guard failure.reason == .full else { throw GatewayError(.storage, detail) }
        log.note(.error, "no event can be stored", [("detail", detail)])
    }

    /// Deletes the positions of event files. The gateway no longer writes files, so the positions would show a lag.
    func deleteFilePositions(_ log: GatewayLog) {
        do {
            for id in try consumers.progress(.file).keys { try consumers.delete(id) }
        } catch {
            log.note(.error, "positions of event files not deleted", [("detail", "\(error)")])
        }
    }

    /// The lag of consumers, webhooks, streams and event files. Omits a kind that cannot be read.
    func lags(at date: Date) -> [Gauges.Lag] {
        EventConsumerID.Kind.allCases.flatMap { kind in
            ((try? consumers.all(kind, of: nil)) ?? []).map { consumer in
                let oldest = consumer.oldestUnreadMilliseconds.map { Milliseconds($0).seconds }
                let seconds = oldest.map { max(0, date.timeIntervalSince1970 - $0) } ?? 0
                return (consumer.id, consumer.lag, seconds, consumer.gap)
            }
        }
    }

    func close() {
        customers.close()
        events.close()
        analytics.stop()
    }
}
