internal import CountersignCore
internal import Dispatch

package protocol EventStore: AppData {
    /// Stores a batch. Calls `completion`, from any thread, once the batch is durable or has failed.
    func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void)

    /// Runs `body`. The appends that `body` makes on this thread share a commit if they fit into one.
    func together(_ body: () -> Void)

    var arrivals: EventArrivals { get }

    var load: StoreLoad { get }

    /// Counts a request whose token this key has verified. The store writes the counts periodically.
    func noteKeyUse(appID: String, keyID: String, milliseconds: Int64)

    /// Checks that the store is writable by writing to it.
    func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void)

    /// Stores waiting batches and closes; later calls fail with `closed`.
    func close()
}

extension EventStore {
    /// Writes to the storage and waits until the write is durable. Returns the failure; nil after success.
    package func probe() -> StoreFailure? {
        let failure = Lock<StoreFailure?>(nil)
        let done = DispatchSemaphore(value: 0)
        probe { result in
            if case .failure(let found) = result { failure.withLock { $0 = found } }
            done.signal()
        }
        done.wait()
        return failure.withLock { $0 }
    }
}
