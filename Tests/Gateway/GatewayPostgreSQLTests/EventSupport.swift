import CountersignCore
import CountersignGatewayTesting
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension TestDatabase {
    func pool() -> PostgreSQLPool { PostgreSQLPool(settings, connections: 8) }

    func openEvents(retention: @escaping @Sendable () -> BytewiseDictionary<AppRules> = { [:] }) throws
        -> PostgreSQLEventStore
    {
        try PostgreSQLEventStore(
            pool(), EventStoreOptions(pendingBytes: 1 << 30, retention: retention), retentionSeconds: 3_600)
    }

    static func useStore(_ body: (TestDatabase, PostgreSQLEventStore) throws -> Void) throws {
        try use { database in
            let store = try database.openEvents()
            defer { store.close() }
            try body(database, store)
        }
    }

    var log: PostgreSQLEventLog { log { Date() } }

    func log(now: @escaping @Sendable () -> Date) -> PostgreSQLEventLog {
        PostgreSQLEventLog(pool: pool(), now: now)
    }
}

extension EventBatch {
    static func of(
        _ ids: [String], app: String = "shop", user: String? = "ada", device: String? = nil,
        received: Int64 = 5,
        body: String = "{}", byContent: Bool = false, proof: EventProof? = nil
    ) -> EventBatch {
        EventBatch(
            appID: app, receivedMilliseconds: received, body: Array(body.utf8),
            events: ids.map { id in
                EventBatch.Event(
                    messageID: id, kind: .track, userID: user, anonymousID: device, name: "Order",
                    timestampMilliseconds: 1, json: 0..<body.utf8.count, isIdentifiedByContent: byContent)
            }, proof: proof)
    }
}

extension EventStore {
    /// Stores a batch and waits.
    func store(_ batch: EventBatch) -> Result<AppendOutcome, StoreFailure> { store([batch])[0] }

    /// Stores batches in one group and waits.
    func store(_ batches: [EventBatch]) -> [Result<AppendOutcome, StoreFailure>] {
        let results = Lock<[Int: Result<AppendOutcome, StoreFailure>]>([:])
        let done = DispatchSemaphore(value: 0)
        together {
            for (number, batch) in batches.enumerated() {
                append(batch) { result in
                    results.withLock { $0[number] = result }
                    done.signal()
                }
            }
        }
        for _ in batches { done.wait() }
        return results.withLock { results in
            batches.indices.map {
                results[$0] ?? .failure(StoreFailure(reason: .failed, detail: "no answer"))
            }
        }
    }
}

extension PostgreSQLEventLog {
    /// All of an app's events, read as a consumer does, once every transaction has ended that was open before.
    func everything(of app: String = "shop") throws -> [StoredEvent] {
        let haveEnded = try pool.use { try EventHorizon.waitForTransactions($0, seconds: 20) }
        try #require(haveEnded)
        var events: [StoredEvent] = []
        var position: Int64 = 0
        while true {
            let range = try follow(EventQuery(appID: app), after: position, limit: 100)
            events += range.events
            position = range.scannedThrough
            if !range.hasMore { return events }
        }
    }

    func ids(of app: String = "shop") throws -> [String] { try everything(of: app).map(\.messageID) }
}
