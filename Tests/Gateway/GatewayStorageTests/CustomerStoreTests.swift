import CountersignCore
import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayTestSupport
import TestSupport
import Testing

@testable import GatewayStorage

@Suite(.ownThreads, .timeLimit(.minutes(5)))
final class CustomerStoreTests {
    private let place: TestStorage
    private let events: any EventStore
    private let customers: any CustomerStore

    init() throws {
        place = try TestStorage()
        let storage = try place.open()
        events = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        customers = try storage.openCustomers()
    }

    deinit {
        customers.close()
        events.close()
    }

    /// Stores a change and waits until it is on disk.
    private func apply(
        _ ids: [String: String], _ properties: [String: String] = [:], at milliseconds: Int64 = 1_000,
        read: [String] = [], app: String = "shop"
    ) throws {
        var change = CustomerChange(
            identifiers: identifiers(ids), atMilliseconds: milliseconds)
        change.properties = properties.map { ($0.key, Array($0.value.utf8)) }
        change.readMessageIDs = read
        let done = DispatchSemaphore(value: 0)
        let outcome = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        events.append(
            EventBatch(
                appID: app, receivedMilliseconds: 2_000, body: [], events: [], customers: [change])
        ) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        try done.waitForSignal()
        _ = try #require(outcome.withLock { $0 }).get()
    }

    private func identifiers(_ ids: [String: String]) -> [CustomerIdentifier] {
        ids.sorted { $0.key < $1.key }.map { CustomerIdentifier(name: $0.key, value: $0.value) }
    }

    private func customer(_ ids: [String: String], app: String = "shop") throws -> StoredCustomer? {
        try identifiers(ids).compactMap { try customers.owner(of: $0, appID: app) }.first
    }

    private func property(_ name: String, _ ids: [String: String]) throws -> String? {
        try customers.property(name, of: try #require(try customer(ids)))
    }

    @Test func aSignInTakesOverTheProfileOfItsCookie() throws {
        try apply(["cookie": "A"], ["seen": "1"])
        let anonymous = try #require(try customer(["cookie": "A"]))
        #expect(!anonymous.isIdentified)
        try apply(["cookie": "A", "registered": "jane"])
        let jane = try #require(try customer(["registered": "jane"]))
        #expect(jane.id == anonymous.id)
        #expect(jane.isIdentified)
        #expect(try property("seen", ["registered": "jane"]) == "1")
    }

    @Test func anAnonymousProfileOfASecondDeviceIsMergedIntoTheCustomer() throws {
        try apply(["cookie": "A", "registered": "jane"], ["city": "\"Brno\"", "age": "30"], at: 1_000)
        try apply(["cookie": "B"], ["city": "\"Wien\"", "size": "\"M\""], at: 1_500, read: ["m-1"])
        let second = try #require(try customer(["cookie": "B"]))
        try apply(["cookie": "B", "registered": "jane"])
        let jane = try #require(try customer(["registered": "jane"]))
        #expect(try customer(["cookie": "A"]) == jane)
        #expect(try customer(["cookie": "B"]) == jane)
        #expect(try customers.isMerged(second.id, into: jane))
        // Of two values the newer one wins.
        #expect(try property("city", ["cookie": "A"]) == "\"Wien\"")
        #expect(try property("age", ["cookie": "A"]) == "30")
        #expect(try property("size", ["cookie": "A"]) == "\"M\"")
        #expect(try customers.inboxReads(of: jane).map(\.messageID) == ["m-1"])
    }

    @Test func customersWithDifferentHardIDsAreNeverMerged() throws {
        try apply(["cookie": "A", "registered": "jane"], ["city": "\"Brno\""])
        try apply(["cookie": "A", "registered": "john"])
        let jane = try #require(try customer(["registered": "jane"]))
        let john = try #require(try customer(["registered": "john"]))
        #expect(jane.id != john.id)
        #expect(try customer(["cookie": "A"]) == jane)
        #expect(try customers.property("city", of: john) == nil)
        #expect(try customers.property("city", of: jane) == "\"Brno\"")
    }

    @Test func softIDsAloneCannotChangeACustomerWithAHardID() throws {
        try apply(["cookie": "A", "registered": "jane"], ["city": "\"Brno\""])
        try apply(["cookie": "B", "registered": "john"])
        try apply(["cookie": "A"], ["city": "\"Forged\""], at: 3_000, read: ["m-1"])
        try apply(["cookie": "A", "device": "D"], ["city": "\"Forged\""], at: 3_000)
        try apply(["cookie": "B", "device": "D", "registered": "jill"])
        let jane = try #require(try customer(["registered": "jane"]))
        #expect(try customer(["cookie": "A"]) == jane)
        #expect(try customer(["cookie": "B"]) == customer(["registered": "john"]))
        #expect(try customer(["device": "D"]) == customer(["registered": "jill"]))
        #expect(try customers.property("city", of: jane) == "\"Brno\"")
        #expect(try customers.inboxReads(of: jane).isEmpty)
    }

    @Test func anOlderUpdateThatArrivesLaterDoesNotReplaceANewerOne() throws {
        try apply(["registered": "jane"], ["city": "\"Wien\""], at: 1_500)
        try apply(["registered": "jane"], ["city": "\"Brno\""], at: 1_000)
        #expect(try property("city", ["registered": "jane"]) == "\"Wien\"")
        try apply(["registered": "jane"], ["city": "null"], at: 1_600)
        #expect(try property("city", ["registered": "jane"]) == nil)
    }

    /// The number of a customer's properties, its stored count, and its stored bytes.
    private func size(_ ids: [String: String]) throws -> (properties: Int, counted: Int, bytes: Int) {
        let id = try #require(try customer(ids)).id
        let size = try place.connection(to: "events").first(
            """
            SELECT (SELECT count(*) FROM customer_property WHERE customer_id = ?1), properties, bytes
            FROM customer WHERE id = ?1
            """, .text(id)
        ) { ($0.int(0), $0.int(1), $0.int(2)) }
        return try #require(size)
    }

    private func properties(_ prefix: String, _ numbers: Range<Int>, _ value: String = "1") -> [String:
        String]
    {
        Dictionary(uniqueKeysWithValues: numbers.map { ("\(prefix)\($0)", value) })
    }

    @Test func theNumberOfPropertiesOfACustomerIsLimited() throws {
        for part in 0..<4 {
            try apply(["cookie": "A"], properties("p", part * 300..<(part + 1) * 300), at: Int64(part) + 1)
        }
        #expect(try size(["cookie": "A"]).properties == 1_000)
        #expect(try size(["cookie": "A"]).counted == 1_000)
        #expect(try property("p899", ["cookie": "A"]) == "1")
        // Existing properties can be changed and removed, but no property added.
        try apply(["cookie": "A"], ["p0": "2", "p1": "null", "late": "1"], at: 100)
        #expect(try property("p0", ["cookie": "A"]) == "2")
        #expect(try property("p1", ["cookie": "A"]) == nil)
        #expect(try property("late", ["cookie": "A"]) == nil)
        #expect(try size(["cookie": "A"]).properties == 1_000)
    }

    @Test func theBytesOfACustomerAreLimited() throws {
        let long = "\"\(String(repeating: "x", count: 100_000))\""
        try apply(["cookie": "A"], properties("p", 0..<20, long))
        let full = try size(["cookie": "A"])
        #expect(full.properties == 10 && full.bytes <= 1 << 20)
        // An existing property cannot become longer. Shortening it makes room.
        let kept = try place.connection(to: "events").all(
            "SELECT name FROM customer_property ORDER BY name"
        ) { $0.text(0) }
        try apply(
            ["cookie": "A"], [kept[0]: "\"\(String(repeating: "x", count: 200_000))\""], at: 2_000)
        #expect(try size(["cookie": "A"]).bytes <= 1 << 20)
        try apply(["cookie": "A"], [kept[0]: "1"], at: 3_000)
        try apply(["cookie": "A"], ["new": long], at: 4_000)
        #expect(try property("new", ["cookie": "A"]) == long)
        #expect(try size(["cookie": "A"]).bytes <= 1 << 20)
    }

    /// The older customer remains. The properties of the customer with a hard id are always retained.
    @Test(arguments: [true, false]) func mergedCustomersHaveTheLimitOfOne(anonymousFirst: Bool) throws {
        let first: (Bool) throws -> Void = { [self] isAnonymous in
            if isAnonymous {
                for part in 0..<2 {
                    try apply(["cookie": "B"], properties("b", part * 400..<(part + 1) * 400), at: 5_000)
                }
                try apply(["cookie": "B"], ["newest": "1", "a0": "\"theirs\""], at: 6_000)
            } else {
                for part in 0..<2 {
                    try apply(
                        ["registered": "jane"], properties("a", part * 450..<(part + 1) * 450), at: 1_000)
                }
            }
        }
        try first(anonymousFirst)
        try first(!anonymousFirst)
        try apply(["cookie": "B", "registered": "jane"])
        #expect(try customer(["cookie": "B"]) == customer(["registered": "jane"]))
        let size = try size(["cookie": "B"])
        #expect(size.properties == 1_000 && size.counted == 1_000)
        for number in [1, 899] { #expect(try property("a\(number)", ["cookie": "B"]) == "1") }
        // The newest of the other properties remain, and the newer value of a property that both had.
        #expect(try property("newest", ["cookie": "B"]) == "1")
        #expect(try property("a0", ["cookie": "B"]) == "\"theirs\"")
    }

    @Test func mergedCustomersHaveTheBytesOfOne() throws {
        let long = "\"\(String(repeating: "x", count: 200_000))\""
        try apply(["cookie": "A"], properties("a", 0..<4, long), at: 1_000)
        try apply(["cookie": "B"], properties("b", 0..<4, long), at: 2_000)
        try apply(["cookie": "A", "mail": "m"])
        try apply(["cookie": "B", "mail": "m"])
        let size = try size(["cookie": "A"])
        #expect(size.properties == 5 && size.bytes <= 1 << 20, "\(size)")
    }

    @Test func appsDoNotShareCustomers() throws {
        try apply(["registered": "jane"])
        #expect(try customer(["registered": "jane"], app: "other") == nil)
        try apply(["registered": "jane"], app: "other")
        #expect(try customer(["registered": "jane"], app: "other") != customer(["registered": "jane"]))
    }

    @Test func theOldestCookieOfACustomerIsDroppedAtTheLimit() throws {
        for number in 0..<66 { try apply(["cookie": "C\(number)", "registered": "jane"]) }
        let jane = try #require(try customer(["registered": "jane"]))
        #expect(try customer(["cookie": "C1"]) == nil)
        #expect(try customer(["cookie": "C2"]) == jane)
        #expect(try customers.identifiers(of: jane).count == 65)
        #expect(try customers.identifiers(of: jane).last == CustomerIdentifier(name: "cookie", value: "C65"))
    }

    @Test func idsAreComparedByTheirBytes() throws {
        try apply(["registered": "r\u{E9}mi"])
        #expect(try customer(["registered": "re\u{301}mi"]) == nil)
    }

    @Test(.onSQLite("PostgreSQL's readers never wait")) func readersDoNotWaitForAWriterThatHoldsTheFile()
        throws
    {
        try apply(["registered": "jane"])
        let writer = try SQLiteConnection(path: place.folder + "/events.sqlite")
        try writer.execute("BEGIN EXCLUSIVE; UPDATE customer SET created_ms = 0")
        #expect(try customer(["registered": "jane"]) != nil)
        try writer.execute("ROLLBACK")
    }

    @Test func aCustomerKeepsTheNewestOfTooManyIDs() throws {
        for number in 0..<300 { try apply(["registered": "jane", "soft\(number)": "x"]) }
        let jane = try #require(try customer(["registered": "jane"]))
        let ids = try customers.identifiers(of: jane)
        #expect(ids.count == Int(CustomerWriter.maximumAllSoftIDs) + 1)
        #expect(ids.last?.name == "soft299")
        #expect(ids.contains { $0.name == "registered" })
        #expect(try customers.identifier("soft299", of: jane) == "x")
        #expect(try customers.identifier("soft0", of: jane) == nil)
    }

    @Test(.onSQLite("its write-ahead log")) func theWALShrinksAfterALongReaderEnds() throws {
        let path = place.folder + "/events.sqlite"
        try apply(["cookie": "A"])
        let reader = try SQLiteConnection(path: path, mode: .readOnly)
        try reader.execute("BEGIN")
        #expect(try reader.first("SELECT count(*) FROM customer") { $0.int(0) } == 1)
        // Other text each time: pages that stay the same are not written.
        for number in 0..<80 {
            let kibibyte = String(repeating: String(number % 10), count: 1 << 10)
            let text = String(repeating: kibibyte, count: 1 << 9)
            try apply(["cookie": "A"], ["p": "\"\(text)\""], at: Int64(number))
        }
        func logBytes() throws -> Int {
            try #require(
                try FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int)
        }
        #expect(try logBytes() > 32 << 20)
        try reader.execute("COMMIT")
        for number in 80..<83 { try apply(["cookie": "A"], ["q": "1"], at: Int64(number)) }
        #expect(try logBytes() <= 32 << 20)
    }

    @Test func aPageOfEventsIsLimitedByBytes() throws {
        let body = Array("{\"a\":\"\(String(repeating: "x", count: 400_000))\"}".utf8)
        let stored = DispatchSemaphore(value: 0)
        for number in 0..<5 {
            let event = EventBatch.Event(
                messageID: "m-\(number)", kind: .track, userID: "u", anonymousID: nil, name: "n",
                timestampMilliseconds: 1, json: 0..<body.count)
            events.append(
                EventBatch(appID: "shop", receivedMilliseconds: 2, body: body, events: [event])
            ) { _ in stored.signal() }
            try stored.waitForSignal()
        }
        let reader = try place.open().log
        let first = try reader.newest(EventQuery(appID: "shop"), before: nil, limit: 500)
        #expect(first.events.map(\.messageID) == ["m-4", "m-3", "m-2"])
        #expect(first.next == first.events.last?.sequence)
        let second = try reader.newest(
            EventQuery(appID: "shop"), before: first.events.last?.sequence, limit: 500)
        #expect(second.events.map(\.messageID) == ["m-1", "m-0"])
        #expect(second.next == nil)
        var export = EventQuery(appID: "shop")
        export.isExport = true
        #expect(try reader.follow(export, after: 0, limit: 2).hasMore)
    }
}
