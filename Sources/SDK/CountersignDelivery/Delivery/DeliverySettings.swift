package import CountersignTransport
package import Foundation

/// Settings of a `DeliveryPipeline`.
package struct DeliverySettings: Sendable {
    /// The directory of the queue. Each pipeline needs its own.
    package var directory: URL
    package var limits = QueueLimits()
    package var flushPolicy = FlushPolicy.automatic
    package var batchEvents = 100
    package var batchBytes = 400_000
    /// The time limit of a request, in seconds.
    package var requestTimeout: TimeInterval = 30
    package var networkRetry = RetryPolicy.network
    package var authenticationRetry = RetryPolicy.authentication
    /// Seconds that a flush waits for the token provider if a call was pending when the flush began. The
    /// limit ends a deadlock with a token provider that itself waits for the flush.
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

    /// Creates the thread that accesses the files in `directory`.
    package func makeStorage(clock: any ClientClock) -> Storage {
        Storage(directory: directory, limits: limits, clock: clock, log: log)
    }
}
