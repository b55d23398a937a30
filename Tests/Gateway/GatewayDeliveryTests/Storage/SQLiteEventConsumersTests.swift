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
struct SQLiteEventConsumersTests {
    @Test func anAcknowledgementThatIsOnItsWayMayBeSentAgain() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/consumers-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let storage = try SQLiteStorage(dataDirectory: folder)
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let consumers = try #require(
            storage.openConsumers(with: store, now: { 0 }) as? StoredConsumers<SQLiteConsumerEngine>)
        let id = EventConsumerID(appID: "shop", name: "billing")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
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
        guard case .leased(let lease) = try consumers.lease(id, limit: 9, seconds: 60),
            case .lease(let held)? = consumers.engine.leases.withLock({ $0[id]?.find(lease.id) })
        else {
            Issue.record("nothing was leased")
            return
        }
        consumers.engine.leases.withLock { $0[id]?.acknowledge(held) }
        do throws(ConsumerFailure) {
            _ = try consumers.acknowledge(lease.id, of: id, through: nil)
            Issue.record("it is committed twice")
        } catch {
            #expect(error.code == .storage)
        }
        consumers.engine.leases.withLock { $0[id]?.finish(held, at: held.reached) }
        #expect(try consumers.acknowledge(lease.id, of: id, through: nil) == held.reached)
    }

    @Test func aMissingConsumerIsNotChanged() throws {
        let folder = FileManager.default.temporaryDirectory.path + "/consumers-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let storage = try SQLiteStorage(dataDirectory: folder)
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: { 0 })
        let id = EventConsumerID(appID: "shop", name: "billing")
        let ways: [() throws -> Void] = [
            { _ = try consumers.seek(id, to: .start) }, { try consumers.delete(id) },
            { _ = try consumers.find(id) }, { _ = try consumers.lease(id, limit: 1, seconds: 60) },
        ]
        for way in ways {
            #expect(#expect(throws: ConsumerFailure.self) { try way() }?.code == .notFound)
        }
    }
}
