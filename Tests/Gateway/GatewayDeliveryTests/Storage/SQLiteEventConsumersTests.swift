import CountersignCore
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayModel
@testable import GatewayStorage

/// Behaviour of SQLite's consumers only. The conformance suite tests the behaviour of both engines.
@Suite(
    .onSQLite("its own consumers; both pass the same conformance checks"), .ownThreads,
    .timeLimit(.minutes(5)))
final class SQLiteEventConsumersTests {
    private let folder = FileManager.default.temporaryDirectory.path + "/consumers-\(UUID().uuidString)"
    private let store: any EventStore
    private let consumers: StoredConsumers<SQLiteConsumerEngine>

    init() throws {
        let storage = try SQLiteStorage(dataDirectory: folder)
        store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        consumers = try #require(
            storage.openConsumers(with: store, now: { 0 }) as? StoredConsumers<SQLiteConsumerEngine>)
    }

    deinit {
        store.close()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func append() {
        let body = Array("{}".utf8)
        let stored = DispatchSemaphore(value: 0)
        store.append(
            EventBatch(
                appID: "shop", receivedMilliseconds: 1, body: body,
                events: [
                    EventBatch.Event(
                        messageID: "m", kind: .track, userID: "u", timestampMilliseconds: 1,
                        json: body.indices)
                ])
        ) { _ in stored.signal() }
        stored.wait()
    }

    @Test func aPendingAcknowledgementMayBeRepeated() throws {
        let id = EventConsumerID(appID: "shop", name: "billing")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        append()
        guard case .leased(let lease) = try consumers.lease(id, limit: 9, seconds: 60),
            case .lease(let held)? = consumers.engine.leases.withLock({ $0[id]?.find(lease.id) })
        else {
            Issue.record("nothing was leased")
            return
        }
        consumers.engine.leases.withLock { $0[id]?.acknowledge(held) }
        do throws(ConsumerFailure) {
            _ = try consumers.acknowledge(lease.id, of: id, through: nil)
            Issue.record("the acknowledgement is committed twice")
        } catch {
            #expect(error.code == .storage)
        }
        consumers.engine.leases.withLock { $0[id]?.finish(held, at: held.scannedThrough) }
        #expect(try consumers.acknowledge(lease.id, of: id, through: nil) == held.scannedThrough)
    }

    /// A poll examines one partition after the other. A seek meanwhile begins a new generation of leases.
    @Test func aPollFromBeforeASeekEndsNoLeaseAfterIt() throws {
        let id = EventConsumerID(appID: "shop", name: "billing")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        append()
        let engine = consumers.engine
        func row() throws -> ConsumerRows.Row {
            try #require(
                try engine.read { try ConsumerRows($0).row(id, generation: SQLiteConsumerEngine.generation) })
        }
        func lease(_ row: ConsumerRows.Row, while reading: @escaping @Sendable () throws -> Void = {}) throws
            -> LeaseAttempt?
        {
            try engine.lease(0, of: row) { connection in
                let range = try engine.follow(EventQuery(appID: id.appID), after: 0, limit: 9, connection)
                try reading()
                var attempt = LeaseAttempt(from: 0, generation: row.generation, range: range)
                attempt.lease = EventLease(
                    id: "lease-\(row.generation)", partition: 0, deadlineMilliseconds: 60_000,
                    events: range.events, scannedThrough: range.scannedThrough, gap: .none)
                return attempt
            }
        }
        let before = try row()
        // The seek comes while the poll reads, so the poll's lease is of the former generation.
        let late = try lease(before) { [consumers] in
            _ = try consumers.seek(id, to: .start)
            // Another worker already reads for the new generation.
            var leases = ConsumerLeases(partitions: 1, generation: before.generation + 1)
            _ = leases.reserve(0, at: 0)
            engine.leases.withLock { $0[id] = leases }
        }
        #expect(late == nil)
        engine.leases.withLock { $0[id]?.abandon(0) }
        let after = try row()
        #expect(after.generation != before.generation)
        _ = try #require(try lease(after))
        let stale = try lease(before)
        #expect(stale == nil)
        let isLeased = engine.leases.withLock { $0[id]?.deadline(of: 0, at: 0) } == 60_000
        #expect(isLeased)
    }

    /// A poll comes after the commit of a seek, but before the seek has ended the earlier leases.
    @Test func aSeekEndsNoLeaseThatBeganAfterIt() throws {
        let id = EventConsumerID(appID: "shop", name: "billing")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        append()
        let engine = consumers.engine
        guard case .leased = try consumers.lease(id, limit: 9, seconds: 60) else { throw CancellationError() }
        try engine.write { try engine.endLeases(of: id, $0) }
        guard case .leased(let new) = try consumers.lease(id, limit: 9, seconds: 60) else {
            throw CancellationError()
        }
        engine.leasesEnded(of: id)
        _ = try consumers.acknowledge(new.id, of: id, through: nil)
        try consumers.delete(id)
        #expect(engine.leases.withLock { $0.isEmpty })
    }

    @Test func aMissingConsumerIsNotChanged() throws {
        let id = EventConsumerID(appID: "shop", name: "billing")
        let ways: [() throws -> Void] = [
            { [consumers] in _ = try consumers.seek(id, to: .start) },
            { [consumers] in try consumers.delete(id) },
            { [consumers] in _ = try consumers.find(id) },
            { [consumers] in _ = try consumers.lease(id, limit: 1, seconds: 60) },
        ]
        for way in ways {
            #expect(#expect(throws: ConsumerFailure.self) { try way() }?.code == .notFound)
        }
    }
}
