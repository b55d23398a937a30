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

        private static func rules(days: Int) -> AppRules {
            var rules = AppRules()
            rules.retentionDays = days
            return rules
        }

        @Test func theExpiredPartitionOfADayIsDropped() throws {
            try TestDatabase.use { database in
                let old = Self.now - 10 * Self.day
                let day = Int(old / Self.day)
                let connection = try database.connect()
                try connection.execute(
                    "CREATE TABLE event_\(day) PARTITION OF event FOR VALUES FROM (\(day)) TO (\(day + 1))")
                var store = try database.openEvents()
                for app in ["shop", "kiosk"] {
                    _ = store.store(.of(["old"], app: app, received: old))
                    _ = store.store(.of(["new"], app: app, received: Self.now))
                }
                store.close()
                func isThere() throws -> Bool? {
                    try connection.first("SELECT to_regclass('event_\(day)') IS NOT NULL") { $0.int(0) != 0 }
                }
                // One app keeps everything.
                store = try database.openEvents { ["shop": Self.rules(days: 3)] }
                store.close()
                #expect(try isThere() == true)
                #expect(try database.log.ids(of: "kiosk") == ["old", "new"])
                store = try database.openEvents {
                    ["shop": Self.rules(days: 3), "kiosk": Self.rules(days: 5)]
                }
                store.close()
                #expect(try isThere() == false)
                #expect(try database.log.ids(of: "kiosk") == ["new"])
                #expect(try database.log.count() == 2)
                #expect(
                    try database.log.follow(EventQuery(appID: "kiosk"), after: 0, limit: 9).gap.isOpen)
            }
        }

        @Test func anExportBesideTheDropOfAPartitionReportsAGap() throws {
            try TestDatabase.use { database in
                let store = try database.openEvents()
                defer { store.close() }
                for id in ["m-1", "m-2"] { _ = store.store(.of([id], received: Self.now)) }
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
                    // The export waits for the lock meanwhile.
                    try? other?.execute("SELECT pg_sleep(0.2); COMMIT")
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
                var store = try database.openEvents()
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
                        store = try database.openEvents { ["shop": Self.rules(days: 3)] }
                        store.close()
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
                let rules = Self.rules(days: 30)
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
