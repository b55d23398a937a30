package import GatewayModel

/// What a database or a disk reports, in what every engine can say of it.
package protocol StorageError: Error {
    /// True when the disk, or the quota on it, is full.
    var isFull: Bool { get }
    /// True when the transaction was undone only because of others at the same time: it may be run again as it is.
    var isRetryable: Bool { get }
}

extension StorageError {
    package var isRetryable: Bool { false }
}

extension StoreFailure {
    /// What an error of a store means.
    package init(_ error: any Error) {
        let isFull = (error as? any StorageError)?.isFull == true
        self.init(reason: isFull ? .full : .failed, detail: "\(error)")
    }
}
