import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite struct EventStoreTests {
        @Test func anIDWhoseTableIsDroppedIsFoundByTheTimeInIt() throws {
            try TestDatabase.useStore { (database, store) throws in
                let now = Date()
                let received = Milliseconds(now).count
                // Not by `UUIDv7.make`, whose time may be later because ids of other tests had later times.
                let time = String(received, radix: 16)
                let id = "0\(time.prefix(7))-\(time.suffix(4))-7000-8000-000000000001"
                #expect(try store.store(.of([id], received: received)).get().accepted == 1)
                // Waits for transactions of other tests, which hide the event until they end.
                #expect(try database.log.everything().count == 1)
                // As when the table with the ids of that day is dropped.
                try database.pool().use { try $0.execute("DELETE FROM message_id") }
                var query = EventQuery(appID: "shop")
                query.messageID = id
                func found(daysLater days: Int) throws -> Int {
                    let later = now.addingTimeInterval(Double(days) * 86_400)
                    return try database.log { later }.newest(query, before: nil, limit: 9).events.count
                }
                #expect(try found(daysLater: 0) == 0)
                #expect(try found(daysLater: EventPartitions.idDays + 1) == 1)
            }
        }

        @Test func aLargeBatchIsSplit() throws {
            try TestDatabase.useStore { (database, store) throws in
                let ids = (0..<10_000).map { "m-\($0)" }
                #expect(try store.store(.of(ids)).get() == AppendOutcome(accepted: 10_000))
                #expect(try store.store(.of(ids)).get() == AppendOutcome(duplicates: 10_000))
                #expect(try database.log.ids() == ids)
                #expect(try database.log.count() == 10_000)
            }
        }

        /// PostgreSQL holds no text with U+0000.
        @Test func aNULCharacterIsReplaced() throws {
            try TestDatabase.useStore { (database, store) throws in
                let results = store.store([
                    .of(["a"]), .of(["b\0"], user: "\0", device: "d\0"), .of(["c"]),
                ])
                for result in results { #expect(try result.get().accepted == 1) }
                #expect(try database.log.ids() == ["a", "b\u{FFFD}", "c"])
                // A repeated event is a duplicate.
                #expect(try store.store(.of(["b\0"], user: "\0", device: "d\0")).get().duplicates == 1)
            }
        }

        @Test func anEventIdentifiedByContentIsAttributedToALaterUser() throws {
            try TestDatabase.useStore { (database, store) throws in
                let both = store.store([
                    .of(["n"], user: nil, device: "d", byContent: true),
                    .of(["n"], user: "eve", device: "d", byContent: true),
                ])
                #expect(try both.map { try $0.get().accepted } == [1, 0])
                #expect(try database.log.everything().map(\.userID) == ["eve"])
            }
        }

        @Test func erasingAnAppKeepsEventsOfOtherApps() throws {
            try TestDatabase.useStore { (database, store) throws in
                let ids = (0..<1_200).map { _ in UUIDv7.make() } + ["x"]
                for app in ["shop", "kiosk"] { _ = store.store(.of(ids, app: app)) }
                try store.erase(appID: "shop")
                #expect(try database.log.ids(of: "shop") == [])
                #expect(try database.log.ids(of: "kiosk") == ids)
                #expect(try database.log.count() == 1_201)
                let connection = try database.connect()
                let left = "SELECT DISTINCT app_id FROM message_id"
                #expect(try connection.all(left) { $0.text(0) } == ["kiosk"])
                // Clients choose the dates in ids.
                try connection.execute(
                    """
                    INSERT INTO message_id SELECT n, 'kiosk', '', '', n FROM generate_series(50000, 52000) AS n;
                    INSERT INTO message_id SELECT n, 'shop', '', '', n
                        FROM unnest(ARRAY[-3, 50001, 60000, extract(epoch FROM now())::int / 86400]) AS n;
                    SET enable_seqscan = off
                    """)
                let scans = try connection.transaction {
                    try EventErasure.eraseIDs(of: "shop", connection)
                    return try connection.first("SELECT sum(idx_scan)::int FROM pg_stat_xact_user_tables") {
                        $0.int(0)
                    }
                }
                #expect(scans ?? .max < 300)
                #expect(try connection.all(left) { $0.text(0) } == ["kiosk"])
                #expect(try store.store(.of(ids)).get().accepted == 1_201)
            }
        }
    }
}
