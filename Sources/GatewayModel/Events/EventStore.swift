/// Where events are kept: the one place that knows how.
package protocol EventStore: AppData {
    /// Stores a batch and calls `completion`, from any thread, when it is safe on disk or has failed.
    func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendOutcome, StoreFailure>) -> Void)

    /// Runs `body`, which appends; the batches of this thread then share a commit, as far as there is room.
    func together(_ body: () -> Void)

    /// Tells those who wait when an app's events were stored.
    var arrivals: EventArrivals { get }

    /// What waits and what lies on the disk, now.
    var load: StoreLoad { get }

    /// Counts that a key has verified a request's token; kept with the next commit.
    func noteKeyUse(appID: String, keyID: String, milliseconds: Int64)

    /// Proves that the store can be written, by a write.
    func probe(completion: @escaping @Sendable (Result<Void, StoreFailure>) -> Void)

    /// Stores what waits and closes; later calls fail with `closed`.
    func close()
}
