import CountersignCore
import CountersignSQLite
import Foundation
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayModel
@testable import GatewayPostgreSQL
@testable import GatewayStorage

extension PostgreSQLTests {
    /// A consumer's workers speak to two gateways, which share nothing but the database.
    @Suite(.timeLimit(.minutes(2)))
    struct SharedLeasesTests {
        private final class Clock: Sendable {
            private let milliseconds = Lock<Int64>(1_000_000)
            var now: @Sendable () -> Int64 { { self.milliseconds.withLock { $0 } } }
            func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }
        }

        private struct Bench: Sendable {
            let id = EventConsumerID(appID: "shop", name: "billing")
            let database: TestDatabase
            let store: any EventStore
            let one: any EventConsumers
            let other: any EventConsumers
            let clock: Clock

            func store(_ count: Int, users: Int = 1) throws {
                _ = try StorageConformance.append(
                    (0..<count).map { StorageConformance.event("m-\($0)", user: "user \($0 % users)") },
                    to: store)
                try database.waitForTransactions()
            }

            func leased(
                _ consumers: any EventConsumers, limit: Int = 100, seconds: Int = 60
            ) throws -> EventLease? {
                if case .leased(let lease) = try consumers.lease(id, limit: limit, seconds: seconds) {
                    return lease
                }
                return nil
            }

            /// Whether an acknowledgement is rejected as too late.
            func isTooLate(_ lease: EventLease, _ consumers: any EventConsumers) throws -> Bool {
                do throws(ConsumerFailure) {
                    try consumers.acknowledge(lease.id, of: id, through: nil)
                    return false
                } catch {
                    return error.code == .leaseExpired
                }
            }
        }

        private func use(_ body: (Bench, TestDatabase, TestFolder) throws -> Void) throws {
            try TestDatabase.use { database in
                let folder = try TestFolder()
                let storage = try folder.storage(database)
                let clock = Clock()
                let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
                defer { store.close() }
                let bench = Bench(
                    database: database, store: store, one: storage.openConsumers(with: store, now: clock.now),
                    other: try folder.storage(database).openConsumers(with: nil, now: clock.now), clock: clock
                )
                try body(bench, database, folder)
            }
        }

        @Test func aLeaseOfOneGatewayIsValidAtTheOther() throws {
            try use { bench, _, _ in
                let (id, one, other) = (bench.id, bench.one, bench.other)
                _ = try one.create(id, EventConsumerSettings(), from: .start)
                try bench.store(4)
                let lease = try #require(try bench.leased(one, limit: 2))
                #expect(try bench.leased(other) == nil)
                #expect(
                    try other.find(id).partitions[0].leasedUntilMilliseconds == bench.clock.now() + 60_000)
                try other.acknowledge(lease.id, of: id, through: lease.events[0].sequence)
                #expect(try bench.leased(other) == nil)
                let position = try other.acknowledge(lease.id, of: id, through: nil)
                #expect(try one.acknowledge(lease.id, of: id, through: nil) == position)
                let next = try #require(try bench.leased(other))
                #expect(next.events.map(\.messageID) == ["m-2", "m-3"])
                try one.release(next.id, of: id)
                #expect(try bench.leased(one)?.events.map(\.messageID) == ["m-2", "m-3"])
            }
        }

        @Test func anExpiredLeaseIsValidUntilAnotherGatewayLeasesItsEvents() throws {
            try use { bench, _, _ in
                let (id, one, other) = (bench.id, bench.one, bench.other)
                _ = try one.create(id, EventConsumerSettings(), from: .start)
                try bench.store(3)
                let first = try #require(try bench.leased(one, limit: 1, seconds: 10))
                bench.clock.advance(seconds: 11)
                try other.acknowledge(first.id, of: id, through: nil)
                let second = try #require(try bench.leased(one, limit: 1, seconds: 10))
                bench.clock.advance(seconds: 11)
                let third = try #require(try bench.leased(other, limit: 2))
                #expect(third.events.map(\.messageID) == ["m-1", "m-2"])
                #expect(try bench.isTooLate(second, one))
                _ = try one.seek(id, to: .start)
                #expect(try bench.isTooLate(third, other))
                let fourth = try #require(try bench.leased(other))
                try one.delete(id)
                _ = try other.create(id, EventConsumerSettings(), from: .start)
                #expect(try bench.isTooLate(fourth, other))
            }
        }

        @Test func aClockThatIsSetBackProlongsNoLease() throws {
            try use { bench, _, _ in
                _ = try bench.one.create(
                    bench.id, EventConsumerSettings(filter: EventFilter(name: "none")), from: .start)
                let named = EventConsumerID(appID: "shop", name: "named")
                _ = try bench.one.create(named, EventConsumerSettings(), from: .start)
                try bench.store(300)
                bench.clock.advance(seconds: 31_536_000)
                for id in [bench.id, named] { _ = try bench.one.lease(id, limit: 2, seconds: 600) }
                bench.clock.advance(seconds: -31_536_000)
                guard case .leased(let lease) = try bench.other.lease(named, limit: 2, seconds: 60) else {
                    Issue.record("the events are leased for a year")
                    return
                }
                #expect(lease.events.map(\.messageID) == ["m-0", "m-1"])
            }
        }

        /// Eight workers poll two gateways concurrently. Each event is leased once, and each user's events in
        /// order.
        @Test func workersOfTwoGatewaysNeverGetTheSameEvents() throws {
            try use { bench, _, _ in
                _ = try bench.one.create(bench.id, EventConsumerSettings(partitions: 4), from: .start)
                try bench.store(400, users: 20)
                let read = Lock<[String: [Int64]]>([:])
                let held = Lock<Set<Int>>([])
                let left = Lock(400)
                try SharedStoresTests.onThreads(8) { worker in
                    let consumers = worker.isMultiple(of: 2) ? bench.one : bench.other
                    while left.withLock({ $0 > 0 }) {
                        guard let lease = try bench.leased(consumers, limit: 7) else { continue }
                        #expect(held.withLock { $0.insert(lease.partition).inserted })
                        read.withLock { read in
                            for event in lease.events {
                                read[event.userID ?? "", default: []].append(event.sequence)
                            }
                        }
                        held.withLock { _ = $0.remove(lease.partition) }
                        left.withLock { $0 -= lease.events.count }
                        try consumers.acknowledge(lease.id, of: bench.id, through: nil)
                    }
                }
                let users = read.withLock { $0 }
                #expect(users.values.reduce(0) { $0 + $1.count } == 400)
                for events in users.values { #expect(zip(events, events.dropFirst()).allSatisfy { $0 < $1 }) }
            }
        }

        /// Acknowledgements and seeks lock the consumer, then a position. A poll that passes a gap locks only a
        /// position, so that no deadlock is possible.
        @Test func aPollDoesNotWaitForTheConsumersRow() throws {
            try use { bench, database, _ in
                let named = EventConsumerID(appID: "shop", name: "named")
                let filter = EventFilter(name: "none")
                _ = try bench.one.create(bench.id, EventConsumerSettings(filter: filter), from: .start)
                _ = try bench.one.create(named, EventConsumerSettings(), from: .start)
                try bench.store(3)
                let connection = try database.connect()
                try connection.execute("INSERT INTO event_floor VALUES ('shop', 1)")
                try connection.execute("BEGIN; SELECT 1 FROM event_consumer FOR UPDATE")
                #expect(try bench.leased(bench.one) == nil)
                let state = try bench.one.find(bench.id)
                #expect(state.gap.isOpen && state.partitions[0].committed > 0)
                guard case .leased(let lease) = try bench.one.lease(named, limit: 9, seconds: 60) else {
                    Issue.record("nothing is leased")
                    return
                }
                // The lock that an inserted row with a reference to the consumer takes.
                try connection.execute("ROLLBACK; BEGIN; SELECT 1 FROM event_consumer FOR KEY SHARE")
                try bench.one.acknowledge(lease.id, of: named, through: nil)
                try connection.execute("ROLLBACK")
            }
        }

        @Test func leasesEndByTheDatabasesClock() throws {
            try use { bench, database, folder in
                let storage = try folder.storage(database, takesGivenTime: false)
                // A gateway whose clock is wrong by years.
                let consumers = storage.openConsumers(with: bench.store, now: { 7 })
                _ = try consumers.create(bench.id, EventConsumerSettings(), from: .start)
                try bench.store(1)
                let lease = try #require(try bench.leased(consumers))
                let connection = try database.connect()
                let now = try #require(
                    try connection.first("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint") {
                        $0.int64(0)
                    })
                #expect((now + 50_000)...(now + 60_000) ~= lease.deadlineMilliseconds)
                try connection.run("UPDATE event_consumer_position SET lease_until_ms = ?1", .integer(now))
                #expect(try bench.leased(consumers) != nil)
            }
        }
    }
}
