/// Why a batch was not stored. Nothing of it was; the sender may try again.
package struct StoreFailure: Error, Sendable {
    package enum Reason: Sendable {
        /// The disk, or the quota on it, is full.
        case full
        /// More waits for the disk than may.
        case overloaded
        /// The database or the disk failed.
        case failed
        /// The gateway is stopping.
        case closed
    }

    package let reason: Reason
    /// For the operator's log; holds no event.
    package let detail: String

    package init(reason: Reason, detail: String) {
        self.reason = reason
        self.detail = detail
    }
}

extension StoreFailure {
    /// The word in the answer.
    package var code: String {
        switch reason {
        case .full: "storage_full"
        case .overloaded: "overloaded"
        case .failed: "storage_unavailable"
        case .closed: "draining"
        }
    }

    /// What is the matter, for the client.
    package var summary: String {
        switch reason {
        case .full: "the gateway's disk is full"
        case .overloaded: "too much data is waiting for the gateway's disk"
        case .failed: "the gateway cannot write to its storage"
        case .closed: "the gateway is stopping"
        }
    }

    /// When another try makes sense.
    package var retryAfterSeconds: Int {
        switch reason {
        case .full: 30
        case .failed: 5
        case .overloaded, .closed: 1
        }
    }
}
