internal import CountersignCore

/// An error of a consumer's operation. The operation has changed nothing, except possibly after `storage`.
package struct ConsumerFailure: Error, Sendable, CustomStringConvertible {
    package enum Code: String, Sendable, TextEnum {
        case notFound = "consumer_not_found"
        case exists = "consumer_exists"
        case invalid = "consumer_invalid"
        case tooMany = "too_many_consumers"
        case leaseExpired = "lease_expired"
        case notInLease = "position_not_in_lease"
        /// The store failed; retry.
        case storage = "storage_unavailable"
    }

    package let code: Code
    /// A description of the error and its remedy; contains no event.
    package let reason: String
    package var store: StoreFailure?

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package var description: String { reason }
}
