package import GatewayModel

/// An error of a database or a disk, independent of the engine.
package protocol StorageError: Error {
    var isFull: Bool { get }
    /// Whether the transaction failed only because of concurrent transactions, so that it can be retried.
    var isRetryable: Bool { get }
}

extension StorageError {
    package var isRetryable: Bool { false }
}

extension StoreFailure {
    package init(_ error: any Error) {
        let isFull = (error as? any StorageError)?.isFull == true
        self.init(reason: isFull ? .full : .failed, detail: "\(error)")
    }
}
