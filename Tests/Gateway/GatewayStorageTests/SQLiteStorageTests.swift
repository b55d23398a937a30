import CountersignCore
import CountersignSQLite
import CountersignTesting
import Foundation
import GatewayModel
import GatewayTestSupport
import Testing

@testable import CountersignGatewayTesting
@testable import GatewayStorage

extension StorageConformance: CustomTestStringConvertible {
    package var testDescription: String { description }
}

@Suite(
    .onSQLite("its own storage; both pass the same conformance checks"), .ownThreads, .timeLimit(.minutes(5)))
struct SQLiteStorageTests {
    private let folder = TemporaryFolder()

    @Test(arguments: StorageConformance.checks)
    func passesTheConformanceSuite(_ check: StorageConformance) throws {
        try check.run(on: try SQLiteStorage(dataDirectory: folder.path + "/data")) { backup in
            _ = try Backup.restore(backup.path, to: folder.path + "/restored")
            return try SQLiteStorage(dataDirectory: folder.path + "/restored")
        }
    }

    /// A full disk prevents a new gateway from writing its first page, or the schema after it.
    @Test(arguments: [false, true]) func aFileWithoutASchemaHasNoEvents(hasPage: Bool) throws {
        let storage = try SQLiteStorage(dataDirectory: folder.path + "/data")
        let path = folder.path + "/data/events.sqlite"
        try Data().write(to: URL(fileURLWithPath: path))
        if hasPage {
            try SQLiteConnection(path: path).execute("PRAGMA journal_mode = WAL")
        } else {
            #expect(try storage.log.keyUses(of: "shop").isEmpty)
            #expect(try storage.people.apps().isEmpty)
        }
        let query = EventQuery(appID: "shop")
        let error = #expect(throws: GatewayError.self) { try storage.log.follow(query, after: 0, limit: 1) }
        #expect(error?.code == .notFound)
        let events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { events.close() }
        #expect(try storage.log.follow(query, after: 0, limit: 1).events.isEmpty)
    }

    /// Until a deletion is complete, repeating it must find all ids of the customer.
    @Test func anInterruptedDeletionOfACustomerKeepsItsIDs() throws {
        let storage = try SQLiteStorage(dataDirectory: folder.path + "/data")
        let cookie = CustomerIdentifier(name: "cookie", value: "c-1")
        let change = CustomerChange(
            identifiers: [cookie, CustomerIdentifier(name: "registered", value: "ada")], atMilliseconds: 1)
        let events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { events.close() }
        _ = try StorageConformance.append([], customers: [change], to: events)
        _ = try storage.openAnalytics(from: NoTraffic(), now: { Date() }, report: { _ in })
        let analytics = try SQLiteConnection(path: folder.path + "/data/analytics.sqlite")
        try analytics.execute("ALTER TABLE sample RENAME TO moved")
        #expect(throws: GatewayError.self) { try storage.people.delete(cookie, in: "shop") }
        #expect(try storage.people.find(cookie, in: "shop")?.identifiers.count == 2)
        try analytics.execute("ALTER TABLE moved RENAME TO sample")
        #expect(try storage.people.delete(cookie, in: "shop").hasProfile)
    }

    #if os(Linux)
        /// Without a lock on the database, its WAL is deleted by the next program that opens and closes it.
        @Test func otherProgramsSeeThatTheDatabasesAreInUse() throws {
            let storage = try SQLiteStorage(dataDirectory: folder.path + "/data")
            let events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
            let consumers = storage.openConsumers(with: events, now: { 0 })
            let analytics = try storage.openAnalytics(from: NoTraffic(), now: { Date() }, report: { _ in })
            let deliveries = try storage.openDeliveries()
            let streams = try storage.openEarlierStreams()
            // Opened later and repeatedly, as by an operator's request.
            let customers = try storage.openCustomers()
            _ = try storage.openControl(as: .account)
            _ = try storage.openControl(as: .account)
            try withExtendedLifetime((events, consumers, analytics, deliveries, streams, customers)) {
                let names = try FileManager.default.contentsOfDirectory(atPath: folder.path + "/data")
                    .filter { $0.hasSuffix(".sqlite-wal") }.map { String($0.dropLast(4)) }
                #expect(
                    names.sorted() == ["analytics.sqlite", "events.sqlite", "webhooks.sqlite"])
                for name in names { #expect(isLocked(folder.path + "/data/" + name), "\(name)") }
            }
        }

        /// Whether SQLite's shared lock is held (https://sqlite.org/lockingv3.html), even by this process.
        /// The file stays open, because closing it would release the process's locks.
        private func isLocked(_ path: String) -> Bool {
            let getLock: Int32 = 36  // F_OFD_GETLK
            var lock = flock()
            lock.l_type = Int16(F_WRLCK)
            lock.l_whence = Int16(SEEK_SET)
            lock.l_start = 0x4000_0002
            lock.l_len = 510
            let file = open(path, O_RDWR | O_CLOEXEC)
            return file >= 0 && fcntl(file, getLock, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
        }
    #endif
}
