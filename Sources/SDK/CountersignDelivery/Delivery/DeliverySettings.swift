internal import CountersignCore
package import CountersignTransport
package import Foundation

package struct DeliverySettings: Sendable {
    /// The directory of the queue. Pipelines of different instances need different directories.
    package var directory: URL
    package var limits = QueueLimits()
    package var flushPolicy = FlushPolicy.automatic
    package var batchEvents = 100
    package var batchBytes = 400_000
    package var headers: [String: String] = [:]
    package var requestTimeout: TimeInterval = 30
    package var networkRetry = RetryPolicy.network
    package var authenticationRetry = RetryPolicy.authentication
    /// Seconds that a flush waits for an earlier call of the token provider. Ends a deadlock with a provider that
    /// itself waits for the flush.
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
        guard flushPolicy.interval ?? 0 >= 0 else {
            throw CountersignError(.invalidConfiguration, "flushPolicy.interval must not be below 0")
        }
        for (name, retry) in [("networkRetry", networkRetry), ("authenticationRetry", authenticationRetry)] {
            guard retry.baseDelay > 0, retry.maximumDelay > 0, retry.maximumServerDelay > 0,
                retry.maximumFailures > 0
            else { throw CountersignError(.invalidConfiguration, "\(name): values must be above 0") }
        }
        for (name, value) in headers {
            guard HeaderFields.isValid(name: name, value: value) else {
                throw CountersignError(
                    .invalidConfiguration, "headers: \(name) cannot be a header field (RFC 9110, section 5)")
            }
            guard !Self.ownHeaders.contains(name.lowercased()), !name.lowercased().hasPrefix("x-braze-")
            else {
                throw CountersignError(
                    .invalidConfiguration, "headers: \(name) is set by the SDK and cannot be changed")
            }
        }
        guard limits.maximumEvents > 0, limits.maximumBytes > 0, limits.maximumAge > 0,
            limits.maximumEventBytes > 0, limits.maximumUnsavedEvents > 0, limits.maximumUnsavedBytes > 0,
            limits.maximumQuarantinedEvents >= 0
        else {
            throw CountersignError(
                .invalidConfiguration, "limits must be above 0, maximumQuarantinedEvents at least 0")
        }
    }

    /// The header fields that the SDK or its transport sets.
    private static let ownHeaders: BytewiseSet = [
        "accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
        "content-type", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
        "x-countersign-signature", "x-write-key",
    ]

    package func makeStorage(clock: any ClientClock) -> Storage {
        Storage(directory: directory, limits: limits, clock: clock, log: log)
    }
}
