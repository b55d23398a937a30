import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite struct EventPositionTests {
        /// The first transaction commits last. A reader must not skip its events.
        @Test func readersStopBeforeOpenTransactions() throws {
            try TestDatabase.useStore { (database, store) throws in
                let slow = try database.connect()
                let base = try EventHorizon.base(slow)
                let batches = [EventBatch.of(["first"])]
                try slow.transaction {
                    let parameters = EventInsert.parameters(
                        EventInsert.rows(of: batches), of: batches, lane: 99)
                    try slow.each(EventInsert.sql(base: base), parameters) { _ in true }
                    #expect(try store.store(.of(["second"])).get().accepted == 1)
                    let range = try database.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9)
                    #expect(range.events.isEmpty)
                }
                #expect(try database.log.ids() == ["first", "second"])
            }
        }

        /// An export includes all events acknowledged before it began.
        /// A stream polls again, so it does not wait.
        @Test func anExportWaitsForATransactionThatIsOpen() throws {
            try TestDatabase.useStore { (database, store) throws in
                let (isOpen, isReading) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
                Thread.detachNewThread {
                    let other = try? database.connect()
                    try? other?.execute("BEGIN; SELECT pg_current_xact_id()")
                    isOpen.signal()
                    isReading.wait()
                    // Reading a page locks the table, so this waits for the end of the first page.
                    try? other?.execute("LOCK TABLE event IN ACCESS EXCLUSIVE MODE; COMMIT")
                }
                isOpen.wait()
                #expect(try store.store(.of(["m-1"])).get().accepted == 1)
                let range = try database.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9)
                #expect(range.events.isEmpty)
                let log = database.log(now: {
                    isReading.signal()
                    return Date()
                })
                var export = EventQuery(appID: "shop")
                export.isExport = true
                let page = try log.follow(export, after: 0, limit: 9)
                #expect(page.events.map(\.messageID) == ["m-1"])
            }
        }

        @Test func anExportThatMissesEventsFails() throws {
            try TestDatabase.useStore { (database, store) throws in
                #expect(try store.store(.of(["m-0"])).get().accepted == 1)
                try database.waitForTransactions()
                let slow = try database.connect()
                try slow.execute("BEGIN; SELECT pg_current_xact_id()")
                #expect(try store.store(.of(["m-1"])).get().accepted == 1)
                var (log, export) = (database.log, EventQuery(appID: "shop"))
                log.patience = 0
                export.isExport = true
                let readable = try log.follow(export, after: 0, limit: 9)
                #expect(readable.events.map(\.messageID) == ["m-0"] && readable.hasMore)
                let error = #expect(throws: GatewayError.self) {
                    try log.follow(export, after: readable.scannedThrough, limit: 9)
                }
                #expect(error?.reason.contains("incomplete") == true)
                let listed = try #require(
                    try log.newest(export, before: nil, limit: 1).events.first?.sequence)
                let positions = try log.positions()
                #expect(
                    try positions.sequence(of: positions.text(after: listed, in: "shop"), in: "shop")
                        == listed)
                // The transaction hides no event before this time or of this app, so the export is complete.
                export.toMilliseconds = 1
                #expect(try log.follow(export, after: readable.scannedThrough, limit: 9).events.isEmpty)
                export.toMilliseconds = nil
                export.appID = "kiosk"
                #expect(try log.follow(export, after: 0, limit: 9).events.isEmpty)
                try slow.execute("COMMIT")
            }
        }

        /// Two gateways with two writers each, and a reader that follows them.
        @Test func aReaderOfFourWritersMissesNoEvent() async throws {
            try await TestDatabase.use { database in
                let stores = [try database.openEvents(), try database.openEvents()]
                defer { for store in stores { store.close() } }
                let perWriter = 300
                let isDone = Lock(false)
                async let read: [String] = {
                    var ids: [String] = []
                    var position: Int64 = 0
                    while true {
                        let wasDone = isDone.withLock { $0 }
                        let range = try database.log.follow(
                            EventQuery(appID: "shop"), after: position, limit: 50)
                        ids += range.events.map(\.messageID)
                        position = range.scannedThrough
                        if wasDone, !range.hasMore { return ids }
                    }
                }()
                let acknowledged = await withTaskGroup(of: [String].self) { group in
                    for writer in 0..<4 {
                        group.addTask {
                            (0..<perWriter).compactMap { number in
                                let id = "\(writer)-\(number)"
                                return (try? stores[writer % 2].store(.of([id])).get().accepted) == 1
                                    ? id : nil
                            }
                        }
                    }
                    return await group.reduce(into: [String]()) { $0 += $1 }
                }
                let waiting = Result { try database.waitForTransactions() }
                isDone.withLock { $0 = true }
                let ids = try await read
                try waiting.get()
                #expect(ids.count == 4 * perWriter && Set(ids) == Set(acknowledged))
                // Events that one writer has stored in sequence are read in that order.
                for writer in 0..<4 {
                    let own = ids.filter { $0.hasPrefix("\(writer)-") }
                    #expect(own == (0..<perWriter).map { "\(writer)-\($0)" })
                }
            }
        }

        /// As when the clients of several gateways retry together.
        @Test func equalIDsInAnyOrderDoNotDeadlock() async throws {
            try await TestDatabase.use { database in
                let stores = [
                    try database.openEvents(), try database.openEvents(), try database.openEvents(),
                ]
                for round in 0..<40 {
                    let ids = (0..<200).map { "\(round)-\($0)" }
                    // 77 and 200 have no common factor, so each id occurs once.
                    let shuffled = (0..<200).map { ids[$0 * 77 % 200] }
                    let accepted = await withTaskGroup(of: Int.self) { group in
                        for (number, store) in stores.enumerated() {
                            let own = number == 0 ? ids : number == 1 ? ids.reversed() : shuffled
                            group.addTask { (try? store.store(.of(own)).get().accepted) ?? -1_000 }
                        }
                        return await group.reduce(0, +)
                    }
                    #expect(accepted == 200)
                }
                for store in stores { store.close() }
                let connection = try database.connect()
                try connection.execute("SELECT pg_stat_clear_snapshot()")
                let deadlocks = try connection.first(
                    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
                ) { $0.int(0) }
                #expect(deadlocks == 0)
            }
        }

        @Test func acknowledgedEventsAreStoredOnceDespiteCutConnections() async throws {
            try await TestDatabase.use { database in
                let store = try database.openEvents()
                defer { store.close() }
                let killer = try database.connect()
                let acknowledged = Lock<[String]>([])
                let failures = Lock(0)
                let left = Lock(4)
                await withTaskGroup(of: Void.self) { group in
                    for writer in 0..<4 {
                        group.addTask {
                            var number = 0
                            // Continues until a statement was interrupted: a fast machine may finish 150 before.
                            while number < 150 || failures.withLock({ $0 }) == 0 && number < 5_000 {
                                let ids = (0..<3).map { "\(writer)-\(number)-\($0)" }
                                number += 1
                                // A device sends the same batch again until it is acknowledged.
                                while (try? store.store(.of(ids)).get()) == nil {
                                    failures.withLock { $0 += 1 }
                                }
                                acknowledged.withLock { $0 += ids }
                            }
                            left.withLock { $0 -= 1 }
                        }
                    }
                    // Bounded, because on one core no writer might succeed.
                    var killed = 0
                    while left.withLock({ $0 }) > 0, killed < 50 {
                        killed +=
                            (try? killer.first(
                                """
                                SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                                WHERE datname = current_database() AND pid <> pg_backend_pid()
                                AND state = 'active' AND query LIKE 'WITH u AS%'
                                """
                            ) { $0.int(0) }) ?? 0
                    }
                }
                let stored = try database.log.ids()
                let told = acknowledged.withLock { $0 }
                #expect(stored.count == told.count && Set(stored) == Set(told))
                #expect(try database.log.count() == told.count)
                #expect(failures.withLock { $0 } > 0)
            }
        }

        @Test func positionsAfterAFailoverAreHigher() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                #expect(try EventHorizon.base(connection) == 0)
                // The state that a promoted standby finds.
                try connection.execute("UPDATE position_base SET timeline = timeline - 1, reached = 5")
                let after = try database.connect()
                #expect(try EventHorizon.base(after) == 1 << 44 + 5)
                #expect(try EventHorizon.base(try database.connect()) == 1 << 44 + 5)
            }
        }
    }
}
