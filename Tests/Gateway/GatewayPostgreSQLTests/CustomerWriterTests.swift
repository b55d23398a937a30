import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import Testing

@testable import GatewayModel
@testable import GatewayPostgreSQL
@testable import GatewayStorage

extension PostgreSQLTests {
    @Suite(.timeLimit(.minutes(2)))
    struct CustomerWriterTests {
        /// Random changes whose IDs repeat. Equal seeds give equal changes.
        private struct Changes {
            var state: UInt64

            mutating func random(_ bound: Int) -> Int {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int(state >> 33) % bound
            }

            mutating func next(ids: Int, of received: Int64) -> CustomerChange {
                var identifiers: [CustomerIdentifier] = []
                for name in ["cookie", "registered", "mail", "phone"] where random(2) == 0 {
                    identifiers.append(CustomerIdentifier(name: name, value: "\(name) \(random(ids))"))
                }
                if identifiers.isEmpty {
                    identifiers = [CustomerIdentifier(name: "cookie", value: "cookie \(random(ids))")]
                }
                if random(2) == 0 { identifiers.reverse() }
                var change = CustomerChange(
                    identifiers: identifiers, joinsByCookieOnly: random(3) == 0,
                    atMilliseconds: Int64(random(50))
                )
                for _ in 0..<random(3) {
                    change.properties.append(
                        ("property \(random(4))", Array("\"\\\\ \(random(1_000))\"".utf8)))
                }
                if random(4) == 0 { change.readMessageIDs = ["m-\(random(5))", "m \"\(random(5))\""] }
                return change
            }
        }

        private static func batch(_ changes: [CustomerChange], app: String = "shop", at received: Int64)
            -> EventBatch
        {
            EventBatch(appID: app, receivedMilliseconds: received, body: [], events: [], customers: changes)
        }

        /// All customers, without their database IDs.
        private static func customers(_ connection: any SQLConnection) throws -> [String] {
            let ids = try connection.all("SELECT id, app_id, created_ms, seen_ms, bytes FROM customer") {
                row in
                (id: row.text(0), rest: (1..<5).map { row.text($0) }.joined(separator: " "))
            }
            return try ids.map { id, rest in
                func texts(_ sql: String) throws -> String {
                    try connection.all(sql, .text(id)) { "\($0.text(0))=\($0.text(1))" }.joined(
                        separator: ", ")
                }
                return try [
                    rest,
                    texts("SELECT name, value FROM customer_identifier WHERE customer_id = ?1 ORDER BY seq"),
                    texts(
                        """
                        SELECT name, value || ' ' || CAST(updated_ms AS text) FROM customer_property
                        WHERE customer_id = ?1 ORDER BY name
                        """),
                    texts(
                        "SELECT message_id, CAST(read_ms AS text) FROM inbox_read WHERE customer_id = ?1 ORDER BY message_id"
                    ),
                    texts("SELECT count(*), '' FROM customer_merge WHERE destination_id = ?1"),
                ].joined(separator: " | ")
            }.sorted()
        }

        @Test(arguments: 1...6 as ClosedRange<UInt64>)
        func customersAreMergedAsWithSQLite(_ seed: UInt64) throws {
            try TestDatabase.use { database in
                let sqlite = try SQLiteConnection(path: ":memory:")
                try EventLogSchema.migrate(sqlite)
                let connection = try database.connect()
                var changes = Changes(state: seed)
                // Few values soon merge customers. Many exceed the limit of 64 IDs of a name.
                let ids = seed.isMultiple(of: 2) ? 6 : 90
                for number in 0..<150 {
                    let received = Int64(number / 3) * 1_000_000
                    let app = changes.random(4) == 0 ? "kiosk" : "shop"
                    let batch = Self.batch(
                        (0...changes.random(4)).map { _ in changes.next(ids: ids, of: received) }, app: app,
                        at: received)
                    try sqlite.transaction {
                        let writer = CustomerWriter(connection: sqlite, appID: app)
                        for change in batch.customers {
                            try writer.apply(change, receivedMilliseconds: received)
                        }
                    }
                    try connection.transaction { try CustomerWriter.store([batch], connection) }
                }
                let expected = try Self.customers(sqlite)
                #expect(expected.count > 3)
                #expect(Set(try Self.customers(connection)).symmetricDifference(expected) == [])
            }
        }

        /// Until a deletion is complete, repeating it must find all ids of the customer.
        @Test func anInterruptedDeletionOfACustomerKeepsItsIDs() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                let ids = ["cookie", "registered"].map { CustomerIdentifier(name: $0, value: "ada") }
                let batch = Self.batch([CustomerChange(identifiers: ids, atMilliseconds: 1)], at: 1)
                try connection.transaction { try CustomerWriter.store([batch], connection) }
                let records = PostgreSQLCustomerRecords(pool: database.pool())
                try connection.execute("ALTER TABLE sample RENAME TO moved")
                #expect(throws: GatewayError.self) { try records.delete(ids[0], in: "shop") }
                #expect(try records.find(ids[0], in: "shop")?.identifiers.count == 2)
                try connection.execute("ALTER TABLE moved RENAME TO sample")
                #expect(try records.delete(ids[0], in: "shop").hasProfile)
            }
        }

        /// Eight gateways create, merge and delete customers with the same IDs, in different orders.
        @Test func concurrentGatewaysCreateOneCustomerPerIDWithoutDeadlock() async throws {
            try await TestDatabase.use { database in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for gateway in 0..<8 {
                        group.addTask {
                            let connection = try database.connect()
                            var changes = Changes(state: UInt64(gateway))
                            for number in 0..<60 {
                                if changes.random(6) == 0 {
                                    try connection.transaction {
                                        try connection.run(
                                            """
                                            SELECT forget_customer(id, 500) FROM (
                                                SELECT id FROM customer ORDER BY random() LIMIT 1 FOR UPDATE SKIP LOCKED) AS one
                                            """)
                                    }
                                }
                                let batches = (0..<3).map { _ in
                                    Self.batch(
                                        (0..<4).map { _ in changes.next(ids: 5, of: 1) },
                                        app: changes.random(2) == 0 ? "shop" : "kiosk", at: Int64(number))
                                }
                                // There is no retry here, so that a deadlock fails the test.
                                try connection.transaction {
                                    try CustomerWriter.store(batches, connection)
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let connection = try database.connect()
                func count(_ sql: String) throws -> Int? { try connection.first(sql) { $0.int(0) } }
                #expect(try count("SELECT count(*) FROM customer") ?? 0 > 0)
                #expect(
                    try count(
                        """
                        SELECT count(*) FROM customer_identifier AS own LEFT JOIN customer ON customer.id = own.customer_id
                        WHERE customer.id IS NULL
                        """) == 0)
                #expect(
                    try count(
                        """
                        SELECT count(*) FROM (SELECT FROM customer_identifier WHERE name = 'registered'
                            GROUP BY customer_id HAVING count(*) > 1) AS two
                        """) == 0)
                #expect(
                    try count(
                        """
                        SELECT count(*) FROM customer WHERE bytes <> (SELECT coalesce(sum(bytes), 0) FROM (
                            SELECT bytes FROM customer_identifier WHERE customer_id = customer.id
                            UNION ALL SELECT bytes FROM customer_property WHERE customer_id = customer.id
                            UNION ALL SELECT bytes FROM inbox_read WHERE customer_id = customer.id) AS kept)
                        """) == 0)
            }
        }

        @Test func aNULInAPropertyNameIsReplaced() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                var change = CustomerChange(
                    identifiers: [CustomerIdentifier(name: "registered", value: "jane")], atMilliseconds: 1)
                change.properties = [("a\0b", Array("1".utf8)), ("{\"c\",\\}", Array("[\"\\u0000\"]".utf8))]
                try connection.transaction {
                    try CustomerWriter.store([Self.batch([change], at: 1)], connection)
                }
                #expect(
                    try connection.all("SELECT name, value FROM customer_property ORDER BY name") {
                        [$0.text(0), $0.text(1)]
                    } == [["a\u{FFFD}b", "1"], ["{\"c\",\\}", "[\"\\u0000\"]"]])
            }
        }
    }
}
