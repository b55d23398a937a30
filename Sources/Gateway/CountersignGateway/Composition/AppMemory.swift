internal import CountersignCore
internal import GatewayDelivery
internal import GatewayModel
internal import GatewayObservability

/// Counts and samples of apps in memory. They are dropped when the app is deleted, and again before its id
/// can be reused, because requests in progress may have added more.
final class AppMemory: AppData {
    private let recorder: AnalyticsRecorder
    private let metrics: Metrics
    private let webhookCounts = Lock<WebhookCounts?>(nil)
    private let arrivals = Lock<EventArrivals?>(nil)

    init(_ observability: Observability) {
        recorder = observability.recorder
        metrics = observability.metrics
    }

    func counts(_ counts: WebhookCounts) { webhookCounts.withLock { $0 = counts } }

    /// Sets the signal that wakes requests waiting for events of a deleted app, so that they fail.
    func wakes(_ arrivals: EventArrivals) { self.arrivals.withLock { $0 = arrivals } }

    func forget(_ appIDs: BytewiseSet) {
        recorder.forget(appIDs)
        metrics.forget(appIDs)
        webhookCounts.withLock { $0 }?.remove(appIDs)
        arrivals.withLock { $0 }?.note(appIDs)
    }

    func erase(appID: String) throws(GatewayError) { forget([appID]) }
}
