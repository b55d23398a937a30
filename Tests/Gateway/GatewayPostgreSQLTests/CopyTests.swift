import CountersignCore
import CountersignSQLite
import Foundation
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayModel
@testable import GatewayPostgreSQL
@testable import GatewayStorage

extension PostgreSQLTests {
    /// Copies a data directory into a database and back.
    @Suite(.timeLimit(.minutes(3)))
    struct CopyTests {
        private static let consumer = EventConsumerID(appID: "shop", name: "billing")
        private static let leftEvents = 1_201

        private struct Interrupted: Error {}

        /// State to be checked again in each copy.
        private struct SavedState {
            var token: RefreshToken
            let signer: String
            let position: Int64
        }

        /// Writes rows to most stores of a data directory. Sequence numbers of events start after `given`.
        private func fill(_ path: String, events: Int = leftEvents, given: Int64 = 0) throws -> SavedState {
            let storage = try SQLiteStorage(dataDirectory: path)
            let control = try storage.openControl(as: .account)
            _ = try control.createApp(id: "shop")
            _ = try control.createApp(id: "app-2")
            try control.renameApp("shop", to: "The shop")
            // PostgreSQL cannot store a NUL in a text.
            _ = try control.createWriteKey(for: "shop", description: "a\0b")
            let secrets = try storage.openSecrets()
            let signer = try secrets.signer(at: 1_000).id
            let families = try storage.openTokenFamilies(refreshKey: secrets.refreshKey())
            defer { families.close() }
            let (_, token) = try families.perform { table in
                try table.open(
                    .init(appID: "shop", subject: "ada", clientID: nil, rules: TokenRules()), at: 0)
            }
            let deliveries = try storage.openDeliveries()
            _ = deliveries
            // A file of an earlier version.
            let streams = path + "/" + EarlierStreams.fileName
            #expect(FileManager.default.createFile(atPath: streams, contents: nil))
            _ = try storage.openEarlierStreams()
            try SQLiteConnection(path: streams).execute(
                "INSERT INTO sink_state (sink, until_ms) VALUES ('shop/stream', 5)")
            try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 30)).close()
            try SQLiteConnection(path: path + "/events.sqlite").execute(
                """
                INSERT INTO sqlite_sequence VALUES ('event', \(given));
                UPDATE event_log SET next_seq = \(given + 1)
                """)
            let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 30))
            defer { store.close() }
            let change = CustomerChange(
                identifiers: [
                    CustomerIdentifier(name: "registered", value: "jane"),
                    CustomerIdentifier(name: "cookie", value: "c1"),
                ], atMilliseconds: 1)
            let body = Array(#"{"ä":"\u0000 is written","n":1}"#.utf8)
            for start in stride(from: 0, to: events, by: 100) {
                let numbers = start..<min(start + 100, events)
                let all = numbers.map { Self.event($0, body) }
                let age = Int64(start) * 3_600_000
                let batch = EventBatch(
                    appID: start % 200 == 0 ? "shop" : "app-2", receivedMilliseconds: Self.now - age,
                    body: body, events: all, customers: start == 0 ? [change] : [],
                    proof: EventProof(
                        verdict: .verified, keyID: start % 200 == 0 ? "k-1" : "k-2", dialect: "native",
                        requestID: start % 300 == 0 ? "r-\(start)" : UUIDv7.make()))
                _ = try store.store(batch).get()
            }
            let consumers = storage.openConsumers(with: store, now: { 7 })
            _ = try consumers.create(Self.consumer, EventConsumerSettings(), from: .start)
            guard case .leased(let lease) = try consumers.lease(Self.consumer, limit: 42, seconds: 60) else {
                throw Interrupted()
            }
            let position = try consumers.acknowledge(lease.id, of: Self.consumer, through: nil)
            return SavedState(token: token, signer: signer, position: position)
        }

        private static let now = Int64(Date().timeIntervalSince1970 * 1000)

        private static func event(_ number: Int, _ body: [UInt8]) -> EventBatch.Event {
            let id: String = number % 2 == 0 ? "m-\(number)" : UUIDv7.make()
            let user: String? = number % 3 == 0 ? nil : "user \(number % 7)"
            let name: String? = number % 5 == 0 ? nil : "Order"
            return EventBatch.Event(
                messageID: id, kind: .track, userID: user, anonymousID: "device", name: name,
                timestampMilliseconds: Int64(number), json: body.indices)
        }

        private func copy(
            _ path: String, to database: TestDatabase, _ keys: TestFolder,
            _ report: (String, Int) throws -> Void = { _, _ in }
        ) throws -> [StorageCopy.Compared] {
            let folder = try FolderCopy(from: path)
            let target = try DatabaseCopy(
                database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: false)
            let copy = StorageCopy(from: folder, to: target, tables: folder.tables)
            try copy.copy(report)
            return try copy.compare()
        }

        private func copy(
            _ database: TestDatabase, _ keys: TestFolder, to path: String,
            _ report: (String, Int) throws -> Void = { _, _ in }
        ) throws -> [StorageCopy.Compared] {
            let source = try DatabaseCopy(
                database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: true)
            let folder = try FolderCopy(to: path, copyOf: source.log())
            let copy = StorageCopy(from: source, to: folder, tables: folder.tables)
            try copy.copy(report)
            return try copy.compare()
        }

        /// Repeats a copy, each time failing one row group later, until it succeeds. Counts the failures.
        private func interrupting(
            _ copy: ((String, Int) throws -> Void) throws -> [StorageCopy.Compared],
            meanwhile: () throws -> Void
        ) throws -> (times: Int, [StorageCopy.Compared]) {
            for most in 0..<200 {
                var groups = 0
                do {
                    let compared = try copy { _, _ in
                        groups += 1
                        if groups > most { throw Interrupted() }
                    }
                    return (most, compared)
                } catch let error as GatewayError {
                    guard error.reason.contains("Interrupted") else { throw error }
                    try meanwhile()
                }
            }
            throw Interrupted()
        }

        private struct Line: Equatable {
            let sequence: Int64
            let id: String
            let user: String?
            let position: String
            let proof: EventProof?
        }

        private func lines(_ log: any EventLog, of app: String) throws -> [Line] {
            let positions = try log.positions()
            var lines: [Line] = []
            var position: Int64 = 0
            while true {
                let range = try log.follow(EventQuery(appID: app), after: position, limit: 100)
                lines += range.events.map {
                    Line(
                        sequence: $0.sequence, id: $0.messageID, user: $0.userID,
                        position: positions.text(after: $0.sequence, in: app), proof: $0.proof)
                }
                position = range.scannedThrough
                if !range.hasMore { return lines }
            }
        }

        /// The index returns rows in order, so that a page of 500 does not read and sort all of them.
        @Test func aPageIsReadInTheOrderOfTheIndex() throws {
            try TestDatabase.use { database in
                try database.connect().execute(
                    """
                    INSERT INTO event (position, day, app_id, message_id, type, timestamp_ms, received_ms, body)
                        SELECT number, 1, 'shop', number, 'track', 1, 1, repeat('x', 200)
                        FROM generate_series(1, 20000) AS number;
                    ANALYZE event
                    """)
                let copy = try DatabaseCopy(
                    database.settings, tokenKeyFile: TestFolder().tokenKeyFile, isSource: true)
                let plan = try copy.connection.all(
                    """
                    EXPLAIN SELECT position FROM event WHERE (app_id, position) > ('shop', 10)
                    ORDER BY app_id, position LIMIT 500
                    """
                ) { $0.text(0) }
                #expect(!plan.contains { $0.contains("Sort  (") }, "\(plan)")
            }
        }

        /// A group is also limited by bytes, because 500 events of the maximum size are 250 MiB.
        @Test func aCopiedGroupOfEventsIsLimitedByBytes() throws {
            try TestDatabase.use { database in
                let (folder, keys) = (try TestFolder(), try TestFolder())
                try FileManager.default.removeItem(atPath: folder.path)
                let storage = try SQLiteStorage(dataDirectory: folder.path)
                _ = try storage.openControl(as: .account)
                try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 30)).close()
                // Body sizes: ten times 1,000 bytes, once 100,000, ten times 1,000.
                try SQLiteConnection(path: folder.path + "/events.sqlite").execute(
                    """
                    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 21)
                    INSERT INTO event (seq, app_id, message_id, type, timestamp_ms, received_ms, body)
                        SELECT n, 'shop', 'm-' || n, 'track', 1, 1,
                            hex(zeroblob(iif(n = 11, 50000, 500))) FROM n
                    """)
                let source = try FolderCopy(from: folder.path)
                let target = try DatabaseCopy(
                    database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: false)
                try StorageCopy(from: source, to: target, tables: source.tables).copy()
                let table = try #require(source.tables.last)
                #expect(table.name == CopyTable.events)
                for place in [source as any CopyEndpoint, target] {
                    func groups(_ most: CopyGroup) throws -> [Int] {
                        var (sizes, lastKey): ([Int], [SQLValue]) = ([], [])
                        let key = place.key(of: table).map { table.place(of: $0) }
                        while true {
                            let rows = try place.rows(of: table, after: lastKey, most: most)
                            guard let last = rows.last else { return sizes }
                            sizes.append(rows.count)
                            lastKey = key.map { last[$0] }
                        }
                    }
                    #expect(try groups(CopyGroup(rows: 8, bytes: 1 << 20)) == [8, 8, 5])
                    // A group includes the row that reaches its byte limit.
                    #expect(try groups(CopyGroup(rows: 500, bytes: 5_000)) == [5, 5, 1, 5, 5])
                    #expect(try groups(CopyGroup(rows: 500, bytes: 1)) == Array(repeating: 1, count: 21))
                }
            }
        }

        @Test func anInterruptedCopyToTheDatabaseAndBackCompletesUnchanged() throws {
            try TestDatabase.use { database in
                let (first, second, keys) = (try TestFolder(), try TestFolder(), try TestFolder())
                try FileManager.default.removeItem(atPath: first.path)
                try FileManager.default.removeItem(atPath: second.path)
                // Larger than the transaction IDs that a new database assigns.
                var state = try fill(first.path, given: 1 << 40)
                let (times, there) = try interrupting { report in
                    try copy(first.path, to: database, keys, report)
                } meanwhile: {
                    let error = #expect(throws: GatewayError.self) { try keys.storage(database) }
                    #expect(error?.reason == UnfinishedCopy.rejection.reason)
                }
                #expect(times > 5)
                #expect(there.filter { !$0.isSame }.map(\.table) == [])
                #expect(there.first { $0.table == "event" }?.to.rows == Self.leftEvents)
                #expect(there.filter { $0.to.rows > 0 }.count > 12)

                let old = try SQLiteStorage(dataDirectory: first.path)
                let storage = try keys.storage(database)
                for app in ["shop", "app-2"] {
                    #expect(try lines(old.log, of: app) == lines(storage.log, of: app))
                }
                try checkThatStoresWork(on: storage, &state, times: 1)
                try database.waitForTransactions()
                let before = try #require(try lines(old.log, of: "shop").last)
                let now = try lines(storage.log, of: "shop")
                #expect(now.count == 602)
                #expect(Set(now.compactMap(\.proof?.keyID)).count == 1)
                #expect(try #require(now.last).sequence > before.sequence)

                let (timesBack, back) = try interrupting { report in
                    try copy(database, keys, to: second.path, report)
                } meanwhile: {
                    let error = #expect(throws: GatewayError.self) {
                        try SQLiteStorage(dataDirectory: second.path)
                    }
                    #expect(error?.reason == UnfinishedCopy.rejection.reason)
                }
                #expect(timesBack > 5)
                #expect(back.filter { !$0.isSame }.map(\.table) == [])
                // The copied rows are as compact as the rows that a gateway writes.
                let columns = "sum(key_id IS NOT NULL), sum(key_number IS NULL), sum(request_uuid IS NULL)"
                func short(_ path: String) throws -> [Int]? {
                    try SQLiteConnection(path: path + "/events.sqlite").first(
                        "SELECT \(columns) FROM event WHERE verdict IS NOT NULL"
                    ) { row in (0...2).map { row.int($0) } }
                }
                #expect(try short(second.path) == short(first.path))
                let new = try SQLiteStorage(dataDirectory: second.path)
                for app in ["shop", "app-2"] {
                    #expect(try lines(storage.log, of: app) == lines(new.log, of: app))
                }
                try checkThatStoresWork(on: new, &state, times: 2)
                let last = try lines(new.log, of: "shop")
                #expect(last.dropLast() == now[...])
                #expect(try #require(last.last).sequence > #require(now.last).sequence)
            }
        }

        /// Checks that tokens, duplicate detection, consumers and the audit log still work in `storage`.
        private func checkThatStoresWork(on storage: any Storage, _ state: inout SavedState, times: Int)
            throws
        {
            let (entries, brokenAt) = try storage.openControl(as: .account).auditLog.verify()
            #expect(entries >= 3 && brokenAt == nil)
            let secrets = try storage.openSecrets()
            #expect(try secrets.signer(at: 2_000).id == state.signer)
            let families = try storage.openTokenFamilies(refreshKey: secrets.refreshKey())
            defer { families.close() }
            let shown = state.token
            let child = try families.perform { table -> RefreshToken? in
                let presentation = TokenFamilyTable.Presentation(
                    now: Int64(times) * 1_000, rules: { _ in TokenRules() })
                guard case .granted(_, let child) = try table.exchange(shown, presentation) else {
                    return nil
                }
                return child
            }
            state.token = try #require(child)
            _ = try families.perform { table in
                try table.open(
                    .init(appID: "shop", subject: "bob", clientID: nil, rules: TokenRules()), at: 0)
            }
            let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 30))
            defer { store.close() }
            let known = try store.store(.of(["m-0"], user: nil, device: "device")).get()
            #expect((known.accepted, known.duplicates) == (0, 1))
            #expect(try store.store(.of(["new \(times)"])).get().accepted == 1)
            let consumers = storage.openConsumers(with: store, now: { 7 })
            #expect(try consumers.find(Self.consumer).partitions.map(\.committed) == [state.position])
        }

        @Test func aCopyThatDiffersFromItsSourceIsRejected() throws {
            try TestDatabase.use { database in
                let (folder, keys) = (try TestFolder(), try TestFolder())
                try FileManager.default.removeItem(atPath: folder.path)
                _ = try fill(folder.path, events: 600)
                let source = try FolderCopy(from: folder.path)
                let target = try DatabaseCopy(
                    database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: false)
                let copy = StorageCopy(from: source, to: target, tables: source.tables)
                try copy.copy()
                let connection = try database.connect()
                try connection.execute(
                    "UPDATE event SET body = body || ' ' WHERE position = 599; UPDATE session SET used_ms = used_ms + 1"
                )
                #expect(
                    try copy.compare().filter { !$0.isSame }.map(\.table).sorted() == ["event", "session"])
                #expect(throws: GatewayError.self) { try keys.storage(database) }
                try connection.execute(
                    "UPDATE event SET body = rtrim(body) WHERE position = 599; UPDATE session SET used_ms = used_ms - 1"
                )
                #expect(try copy.compare().allSatisfy(\.isSame))
                _ = try keys.storage(database)
            }
        }

        @Test func runningSourcesAndNonEmptyTargetsAreRejected() throws {
            try TestDatabase.use { database in
                let (folder, keys) = (try TestFolder(), try TestFolder())
                try FileManager.default.removeItem(atPath: folder.path)
                _ = try fill(folder.path, events: 5)
                _ = try keys.storage(database).openControl(as: .account).createApp(id: "other")
                let error = #expect(throws: GatewayError.self) { try copy(folder.path, to: database, keys) }
                #expect(error?.reason.contains("not empty") == true)
                let full = #expect(throws: GatewayError.self) { try copy(database, keys, to: folder.path) }
                #expect(full?.reason.contains("not empty") == true)
                try database.connect().execute(
                    """
                    INSERT INTO gateway (id, name, version, started_ms, seen_ms)
                    VALUES ('one', 'host', '1', 0, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)
                    """)
                let running = #expect(throws: GatewayError.self) {
                    try DatabaseCopy(database.settings, tokenKeyFile: keys.tokenKeyFile, isSource: true)
                        .checkStopped()
                }
                #expect(running?.code == .alreadyRunning)
                let lock = try DataDirectory(path: folder.path).lock()
                #expect(throws: GatewayError.self) { try FolderCopy(from: folder.path) }
                _ = lock
            }
        }
    }
}
