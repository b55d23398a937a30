import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite struct RetentionTests {
        private static let day: Int64 = 86_400_000
        private static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }

        @Test func expiredDayPartitionsAreDropped() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                let store = try database.openEvents()
                let days = [12, 10].map { Self.now / Self.day - $0 }
                for day in days { try EventPartitions.make(pastDay: day, connection) }
                for app in ["kiosk", "shop"] {
                    for day in days { _ = store.store(.of(["\(day)"], app: app, received: day * Self.day)) }
                    _ = store.store(.of(["new"], app: app, received: Self.now))
                }
                store.close()
                try connection.execute(
                    """
                    INSERT INTO event_consumer (app_id, kind, name, hold_days, created_ms)
                    VALUES ('kiosk', 'pull', 'a', 1, 0), ('shop', 'pull', 'b', 30, 0)
                    """)
                let rules: BytewiseDictionary = ["shop": AppRules(days: 3), "kiosk": AppRules(days: 5)]
                var passed: [String] = []
                func drop(_ rules: BytewiseDictionary<AppRules>) throws {
                    var keepers: [Int: String] = [:]
                    try EventPartitions.dropEvents(
                        rules, nowMilliseconds: Self.now, keepers: &keepers, connection
                    ) { passed.append($0.name) }
                }
                func counts() throws -> [Int] {
                    try connection.all(
                        "SELECT sum(events)::bigint FROM app_usage UNION ALL SELECT count(*) FROM event_floor"
                    ) { $0.int(0) }
                }
                // One app keeps everything.
                try drop(rules.filter { $0.key == "shop" })
                #expect(try database.log.ids(of: "kiosk").count == 3)
                // A consumer holds the events of one app.
                try drop(rules)
                #expect(try counts() == [6, 0] && passed == [])
                // A view prevents the second drop.
                try connection.execute(
                    "UPDATE event_consumer SET hold_days = 1; CREATE VIEW rest AS TABLE event_\(days[1])")
                #expect(throws: PostgreSQLError.self) { try drop(rules) }
                #expect(try counts() == [4, 2] && passed == ["a", "b"])
                try connection.execute("DROP VIEW rest")
                try database.openEvents { rules }.close()
                let left = try connection.first("SELECT to_regclass('event_\(days[1])')") { !$0.isNull(0) }
                #expect(left == false)
                #expect(try database.log.ids(of: "kiosk") == ["new"])
                #expect(try database.log.count() == 2)
                #expect(
                    try database.log.follow(EventQuery(appID: "kiosk"), after: 0, limit: 9).gap.isOpen)
            }
        }

        @Test func anExportDuringTheDropOfAPartitionReportsAGap() throws {
            try TestDatabase.use { database in
                let store = try database.openEvents()
                for id in ["m-1", "m-2"] { _ = store.store(.of([id], received: Self.now)) }
                store.close()
                let sequences = try database.log.everything().map(\.sequence)
                let isDropped = DispatchSemaphore(value: 0)
                Thread.detachNewThread {
                    let other = try? database.connect()
                    try? other?.execute(
                        """
                        BEGIN; DROP TABLE event_\(Self.now / Self.day);
                        INSERT INTO event_floor VALUES ('shop', \(sequences[1]))
                        """)
                    isDropped.signal()
                    // Commits once the export waits for the lock. The server sends no notification for it.
                    try? other?.execute(
                        """
                        DO $$ BEGIN WHILE NOT EXISTS (
                            SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
                            WHERE datname = current_database() AND mode = 'AccessShareLock' AND NOT granted
                        ) LOOP PERFORM pg_sleep(0.001); END LOOP; END $$; COMMIT
                        """)
                }
                isDropped.wait()
                var export = EventQuery(appID: "shop")
                export.isExport = true
                let page = try database.log.follow(export, after: sequences[0], limit: 9)
                #expect(page.events.isEmpty && page.gap.isOpen)
            }
        }

        @Test func retentionRunsBesideAnOpenTransactionOnClusterNotes() throws {
            try TestDatabase.use { database in
                let store = try database.openEvents()
                _ = store.store(.of(["old"], received: Self.now - 10 * Self.day))
                store.close()
                // Retention reads no event before the transactions of other tests have ended.
                try database.waitForTransactions()
                let notes = try database.connect()
                try notes.transaction {
                    try notes.execute(
                        "SELECT pg_advisory_xact_lock(\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.AdvisoryLock.notes))"
                    )
                    // On a busy machine, the time of a first round may end before its deletions.
                    for _ in 0..<10 where try database.log.count() > 0 {
                        try database.openEvents { ["shop": AppRules(days: 3)] }.close()
                    }
                    #expect(try database.log.count() == 0)
                }
            }
        }

        @Test func retentionReadsNoEventsOfAnAppWithNothingExpired() throws {
            try TestDatabase.use { database in
                let store = try database.openEvents()
                _ = store.store((0..<20).map { .of(["b-\($0)"], app: "busy", received: 1) })
                _ = store.store(.of(["i-1", "i-2"], app: "idle", received: Self.now))
                store.close()
                try database.waitForTransactions()
                let connection = try database.connect()
                func counts() throws -> (read: Int, deleted: Int) {
                    try connection.first(
                        """
                        SELECT sum(seq_tup_read + idx_tup_fetch)::bigint, sum(n_tup_del)::bigint
                        FROM pg_stat_xact_user_tables WHERE relname ~ '^event_([0-9]+|default)$'
                        """
                    ) { ($0.int(0), $0.int(1)) } ?? (-1, -1)
                }
                /// Event rows read and deleted by one step, from the server's statistics.
                func work(_ sweep: inout RetentionSweeper) throws -> (goesOn: Bool, read: Int, deleted: Int) {
                    try connection.transaction {
                        let before = try counts()
                        let goesOn = try sweep.step(connection)
                        let after = try counts()
                        return (goesOn, after.read - before.read, after.deleted - before.deleted)
                    }
                }
                let rules = AppRules(days: 30)
                var sweep = RetentionSweeper(appID: "idle", rules: rules, nowMilliseconds: Self.now)
                var done = try work(&sweep)
                #expect(!done.goesOn && done.deleted == 0 && done.read <= 2, "\(done)")
                done = try work(&sweep)
                #expect(!done.goesOn && done.deleted == 0 && done.read == 0, "\(done)")
                sweep = RetentionSweeper(
                    appID: "idle", rules: rules, nowMilliseconds: Self.now + 31 * Self.day,
                    oldestMilliseconds: sweep.oldestMilliseconds)
                done = try work(&sweep)
                #expect(done.goesOn && done.deleted == 2, "\(done)")
                done = try work(&sweep)
                #expect(!done.goesOn && done.deleted == 0)
                #expect(try database.log.ids(of: "busy").count == 20)
                #expect(try database.log.ids(of: "idle") == [])
            }
        }

        @Test func rowsOfTheDefaultPartitionMoveToTheirDay() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                let today = Int(Self.now / Self.day)
                try connection.execute("DROP TABLE event_\(today); DROP TABLE message_id_\(today)")
                // A partition of events needs no lock on the table of ids.
                try connection.transaction {
                    try connection.execute("LOCK TABLE message_id IN ROW EXCLUSIVE MODE")
                    #expect(throws: PostgreSQLError.self) { try EventPartitions.make(database.connect()) }
                }
                #expect(try connection.first("SELECT count(*) FROM event_\(today)") { $0.int(0) } == 0)
                var store = try database.openEvents()
                // The first round has created the tables again. They are dropped again while the store runs.
                try connection.execute("DROP TABLE event_\(today); DROP TABLE message_id_\(today)")
                let id = UUIDv7.make()
                #expect(try store.store(.of([id], received: Self.now)).get().accepted == 1)
                #expect(try connection.first("SELECT count(*) FROM event_default") { $0.int(0) } == 1)
                store.close()
                store = try database.openEvents()
                defer { store.close() }
                #expect(try connection.first("SELECT count(*) FROM event_\(today)") { $0.int(0) } == 1)
                #expect(try store.store(.of([id], received: Self.now)).get().duplicates == 1)
                #expect(try database.log.ids() == [id])
            }
        }
    }
}
