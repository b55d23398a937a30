internal import CountersignCore
internal import GatewayDelivery
internal import GatewayModel
internal import GatewayObservability

/// Counts and samples of apps in memory. ``AppRegistry`` and ``DeletedApps`` remove them when an app is deleted.
/// ``DeletedApps`` removes them again before the id can be reused, because requests in progress may add more.
final class AppMemory: AppData {
    private let recorder: AnalyticsRecorder
    private let metrics: Metrics
    private let delivery = Lock<(webhookCounts: WebhookCounts, arrivals: EventArrivals)?>(nil)

    init(_ observability: Observability) {
        recorder = observability.recorder
        metrics = observability.metrics
    }

    /// `arrivals` wakes requests waiting for events of a deleted app, so that they fail.
    func setDelivery(_ webhookCounts: WebhookCounts, arrivals: EventArrivals) {
        delivery.withLock { $0 = (webhookCounts, arrivals) }
    }

    func remove(_ appIDs: BytewiseSet) {
        recorder.forget(appIDs)
        metrics.forget(appIDs)
        let delivery = delivery.withLock { $0 }
        delivery?.webhookCounts.remove(appIDs)
        delivery?.arrivals.note(appIDs)
    }

    func erase(appID: String) throws(GatewayError) { remove([appID]) }
}
