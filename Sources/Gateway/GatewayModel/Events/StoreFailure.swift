/// The reason why a batch was not stored completely. After a retry, events that were stored count as duplicates.
package struct StoreFailure: Error, Sendable {
    package enum Reason: Sendable {
        case full
        case overloaded
        case failed
        case closed
    }

    package let reason: Reason
    /// A description for the operator's log; contains no event.
    package let detail: String

    package init(reason: Reason, detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

extension StoreFailure {
    package var code: String {
        switch reason {
        case .full: "storage_full"
        case .overloaded: "overloaded"
        case .failed: "storage_unavailable"
        case .closed: "draining"
        }
    }

    package var summary: String {
        switch reason {
        case .full: "the gateway's disk is full"
        case .overloaded: "too much data is waiting for the gateway's disk"
        case .failed: "the gateway cannot write to its storage"
        case .closed: "the gateway is stopping"
        }
    }

    package var retryAfterSeconds: Int {
        switch reason {
        case .full: 30
        case .failed: 5
        case .overloaded, .closed: 1
        }
    }
}
