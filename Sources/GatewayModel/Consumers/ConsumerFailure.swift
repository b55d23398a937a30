internal import CountersignCore

/// Why something was not done to a consumer. Nothing of it was.
package struct ConsumerFailure: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable, TextEnum {
        case notFound = "consumer_not_found"
        case exists = "consumer_exists"
        case invalid = "consumer_invalid"
        case tooMany = "too_many_consumers"
        case leaseExpired = "lease_expired"
        case notInLease = "position_not_in_lease"
        /// The store did not take it; try again.
        case storage = "storage_unavailable"
    }

    package let code: Code
    /// What and what to do; holds no event.
    package let reason: String
    /// What the store said, when that was it.
    package var store: StoreFailure?

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package var description: String { reason }
}
