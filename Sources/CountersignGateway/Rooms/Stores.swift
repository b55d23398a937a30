internal import CountersignCore
internal import Dispatch
internal import GatewayAdmission
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// What requests are stored in and counted by.
struct Stores: Sendable {
    let events: any EventStore
    let customers: any CustomerStore
    let analytics: AnalyticsStore

    init(
        in storage: SQLiteStorage, _ configuration: GatewayConfiguration, apps: AppRegistry,
        observability: Observability
    ) throws(GatewayError) {
        events = try storage.openEvents(
            EventStoreOptions(
                pendingBytes: configuration.limits.pendingBytes,
                diskFloorBytes: configuration.diskFloorBytes, observer: observability.observer,
                retention: { apps.rules }))
        customers = try storage.openCustomers()
        analytics = try storage.openAnalytics(from: observability.recorder) { [log = observability.log] in
            log.note(.error, "analytics not written", [("detail", $0)])
        }
    }

    /// Throws `storage` unless events can be written now.
    func prove() throws(GatewayError) {
        let proof = Lock<Result<Void, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        events.probe { outcome in
            proof.withLock { $0 = outcome }
            done.signal()
        }
        done.wait()
        if case .failure(let failure) = proof.withLock({ $0 }) {
            throw GatewayError(.storage, "\(failure.summary): \(failure.detail)")
        }
    }

    func close() {
        customers.close()
        events.close()
        analytics.stop()
    }
}
