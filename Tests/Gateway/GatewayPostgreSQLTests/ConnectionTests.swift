import CountersignGatewayTesting
import CountersignSQLite
import Foundation
import GatewayModel
import GatewayStorage
import Testing

@testable import GatewayPostgreSQL

extension PostgreSQLTests {
    @Suite struct ConnectionTests {
        @Test func boundValuesRoundTrip() throws {
            try TestDatabase.use(migrated: false) { database in
                let connection = try database.connect()
                let blob: [UInt8] = Array(0...255)
                let row = try connection.first(
                    "SELECT ?1, ?2, ?3, ?4, ?5::text, ?1 = ?1, -?2, ''::bytea, ''",
                    .text("a ? 'é"), .integer(.max), .real(0.1), .blob(blob), .null
                ) { row in
                    #expect(row.text(0) == "a ? 'é")
                    #expect(row.int64(1) == .max)
                    #expect(row.double(2) == 0.1)
                    #expect(row.blob(3) == blob)
                    #expect(row.isNull(4) && row.optionalText(4) == nil && row.optionalInt64(4) == nil)
                    #expect(row.int(5) == 1)
                    #expect(row.int64(6) == -Int64.max)
                    #expect(row.blob(7) == [] && !row.isNull(7))
                    #expect(row.blob(8) == [])
                    return true
                }
                #expect(row == true)
                #expect(try connection.first("SELECT ?1", .integer(.min)) { $0.int64(0) } == .min)
            }
        }

        @Test func placeholdersAreNumbered() {
            #expect(Placeholders.numbered("a = ? AND b = ?") == "a = $1 AND b = $2")
            #expect(Placeholders.numbered("a = ?2 AND b = ?1 AND c = ?") == "a = $2 AND b = $1 AND c = $3")
            #expect(Placeholders.numbered("'?' \"?\" ?12") == "'?' \"?\" $12")
        }

        @Test func errorsContainNoBoundValues() throws {
            try TestDatabase.use { database in
                let connection = try database.connect()
                let error = #expect(throws: PostgreSQLError.self) {
                    try connection.run(
                        "INSERT INTO app_usage (app_id, lane) VALUES (?1, 0), (?1, 0)", .text("secret-value"))
                }
                #expect(error?.sqlState == "23505")
                #expect(error.map { "\($0)" }?.contains("secret-value") == false)
                // The connection stays usable.
                #expect(try connection.first("SELECT 1") { $0.int(0) } == 1)
            }
        }

        /// If an initializer throws after all properties are set, `deinit` runs. Closing the connection twice
        /// would crash.
        @Test func aConnectionWhoseFirstStatementFailsIsClosedOnce() throws {
            try TestDatabase.use(migrated: false) { database in
                var settings = database.settings
                settings.statementMilliseconds = -5
                let failing = settings
                for _ in 0..<20 {
                    do {
                        _ = try PostgreSQLConnection(failing)
                        Issue.record("the connection was opened")
                    } catch let error as PostgreSQLError {
                        #expect(error.sqlState == "22023")
                    }
                }
                let connection = try database.connect()
                #expect(try connection.first("SELECT 1") { $0.int(0) } == 1)
            }
        }

        @Test func aNULCharacterIsReplaced() throws {
            try TestDatabase.use(migrated: false) { database in
                let connection = try database.connect()
                #expect(try connection.first("SELECT ?1", .text("a\0b")) { $0.text(0) } == "a\u{FFFD}b")
                var parameters = Parameters()
                parameters.add(texts: ["\0", nil, "c"])
                var found: [String] = []
                try connection.each("SELECT array_to_string(?1, ',', 'none')", parameters) { row in
                    found.append(row.text(0))
                    return true
                }
                #expect(found == ["\u{FFFD},none,c"])
            }
        }

        @Test func aStatementThatTakesTooLongEnds() throws {
            try TestDatabase.use(migrated: false) { database in
                var settings = database.settings
                settings.statementMilliseconds = 100
                let connection = try PostgreSQLConnection(settings)
                let error = #expect(throws: PostgreSQLError.self) {
                    try connection.run("SELECT pg_sleep(30)")
                }
                #expect(error?.sqlState == "57014")
            }
        }

        @Test func aLostConnectionIsReported() throws {
            try TestDatabase.use(migrated: false) { database in
                let connection = try database.connect()
                let pid = try #require(try connection.first("SELECT pg_backend_pid()") { $0.int64(0) })
                try database.connect().run("SELECT pg_terminate_backend(?1::int, 5000)", .integer(pid))
                #expect(!connection.isSound)
                let error = #expect(throws: PostgreSQLError.self) { try connection.run("SELECT 1") }
                #expect(error?.isConnectionLost == true)
            }
        }

        @Test(arguments: [
            "user:secret@host:port:port/x?unknown=1", "user:secret/@host/x", "user:pa@secret@host/x",
            "user:secret?/@host/x",
        ])
        func anInvalidAddressIsNotRepeatedInTheError(address: String) {
            let error = #expect(throws: GatewayError.self) { try PostgreSQLSettings("postgres://" + address) }
            #expect(error?.reason.contains("secret") == false)
        }
    }
}
