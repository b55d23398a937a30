package import CountersignTransport
package import Foundation

/// How a `DeliveryPipeline` works.
package struct DeliverySettings: Sendable {
    /// Where the queue is: one directory for each pipeline.
    package var directory: URL
    package var limits = QueueLimits()
    package var flushPolicy = FlushPolicy.automatic
    package var batchEvents = 100
    package var batchBytes = 400_000
    /// Seconds that a request may take.
    package var requestTimeout: TimeInterval = 30
    package var networkRetry = RetryPolicy.network
    package var authenticationRetry = RetryPolicy.authentication
    /// Seconds that a flush waits for a credential that was being looked for before it. Whoever is asked for it may wait for that
    /// flush in a way that nobody can see.
    package var patience: TimeInterval = 5
    /// Seconds in the background after which a new session begins.
    package var sessionTimeout: TimeInterval = 10
    package var log: CountersignLog?

    package init(directory: URL) {
        self.directory = directory
    }

    func validate() throws(CountersignError) {
        guard batchEvents > 0, batchBytes > 0, requestTimeout > 0 else {
            throw CountersignError(
                .invalidConfiguration, "batchEvents, batchBytes and requestTimeout must be above 0")
        }
        guard limits.maximumEvents > 0, limits.maximumBytes > 0, limits.maximumAge > 0,
            limits.maximumEventBytes > 0, limits.maximumUnsavedEvents > 0, limits.maximumUnsavedBytes > 0
        else { throw CountersignError(.invalidConfiguration, "limits must be above 0") }
    }

    /// The one thread that touches the files in `directory`.
    package func makeStorage(clock: any ClientClock) -> Storage {
        Storage(directory: directory, limits: limits, clock: clock, log: log)
    }
}
