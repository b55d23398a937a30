package import CountersignCore

/// What clients of other shapes, which are built on this one, do with its queue.
extension CountersignClient {
    /// Records something of a kind of the dialect's own, and returns at once.
    package func record(_ kind: EventKind, payload: [String: JSONValue]) {
        recorder.record(kind, name: nil, payload: payload)
    }

    /// Does this in the background, one after the other.
    package func perform(_ work: @escaping @Sendable () -> Void) {
        storage.submit { _ in work() }
    }

    /// Stores a record; when it returns, the record is on disk.
    package func store(
        _ kind: EventKind, payload: [String: JSONValue], messageID: String
    ) async throws {
        _ = try await withCheckedThrowingContinuation { continuation in
            recorder.record(kind, name: nil, payload: payload, messageID: messageID) {
                continuation.resume(with: $0)
            }
        }
    }

    /// The records that wait, the oldest first, as they will be sent.
    package func waitingBodies() async throws -> [[UInt8]] {
        await recorder.drain()
        return try await storage.perform { queue in try queue.bodies() }
    }

    /// How many records wait.
    package func waitingCount() async throws -> Int {
        await recorder.drain()
        return try await storage.perform { queue in try queue.value(of: .rows) }
    }

    /// Removes a record that waits.
    ///
    /// - Returns: False if there is none.
    package func removeWaiting(messageID: String) async throws -> Bool {
        await recorder.drain()
        return try await storage.perform { queue in try queue.remove(messageID: messageID) }
    }

    /// Removes all records; tokens stay.
    package func removeAllWaiting() async throws {
        try await recorder.removeAll()
    }

    /// Sends in another way from now on.
    package func configure(_ policy: FlushPolicy, batchEvents: Int, newestFirst: Bool) {
        engine.inbox.post(.configure(policy, batchEvents: batchEvents, newestFirst: newestFirst))
    }

    /// Sends what waits without waiting for more.
    package func sendSoon() { engine.inbox.post(.sendSoon) }

    /// There is another access token for all records.
    package func accessTokenChanged(generation: Int) {
        engine.inbox.post(.accessTokenChanged(generation: generation))
    }
}
