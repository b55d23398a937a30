#if POSTGRESQL
    internal import CountersignCore
    internal import Foundation
    package import GatewayModel
    package import GatewayPostgreSQL

    /// A database of its own in the server that `scripts/postgresql.sh run` has started, until ``drop()``.
    package final class TestDatabase: Sendable {
        /// There is no server to make a database in.
        package struct NoServer: Error, CustomStringConvertible {
            package let description = "no server to test with: run this by scripts/postgresql.sh run"
        }

        /// The URL of a superuser's database; nil where there is no server to test with.
        package static let server = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_POSTGRESQL"]

        package let name: String
        package let url: String
        package let settings: PostgreSQLSettings

        /// A migrated database of which the others are copies, which take a quarter of the time.
        private static let template = Result { try TestDatabase(copyOf: nil, migrated: true) }

        package convenience init(migrated: Bool = true) throws {
            try self.init(copyOf: migrated ? Self.template.get() : nil, migrated: false)
        }

        /// A database without tables whose text encoding differs from the server's.
        package convenience init(encoding: String) throws {
            try self.init(
                copyOf: nil, migrated: false, options: " ENCODING '\(encoding)' LOCALE 'C' TEMPLATE template0"
            )
        }

        private init(copyOf original: TestDatabase?, migrated: Bool, options: String = "") throws {
            guard let server = Self.server, var url = URLComponents(string: server) else { throw NoServer() }
            name = "test_" + UUIDv7.make().replacing("-", with: "")
            // The files are copied: writing each page to the log takes three times as long, and a commit of another test
            // is not seen by its readers meanwhile.
            let copy = original.map { " TEMPLATE \($0.name) STRATEGY FILE_COPY" } ?? ""
            try Self.administer("CREATE DATABASE \(name)\(copy)\(options)")
            url.path = "/" + name
            self.url = url.string ?? server
            settings = try PostgreSQLSettings(self.url)
            if migrated { try PostgreSQLSchema.migrate(settings) }
            // A copy is the same log of events, and two tests' are not.
            if original != nil {
                try connect().execute("UPDATE event_log SET id = uuid_send(gen_random_uuid())")
            }
        }

        /// Runs `body` with a database, which is gone afterwards.
        package static func use(migrated: Bool = true, _ body: (TestDatabase) throws -> Void) throws {
            let database = try TestDatabase(migrated: migrated)
            defer { database.drop() }
            try body(database)
        }

        /// Its tasks have threads of their own, which may wait for the server.
        package static func use(
            migrated: Bool = true, _ body: @Sendable (TestDatabase) async throws -> Void
        ) async throws {
            let database = try TestDatabase(migrated: migrated)
            defer { database.drop() }
            try await onOwnThreads { try await body(database) }
        }

        /// Ends the connections that there are, too.
        package func drop() {
            try? Self.administer("DROP DATABASE \(name) WITH (FORCE)")
        }

        /// Lets nobody in, and ends the connections that there are.
        package func cutOff() throws {
            try Self.administer(
                """
                ALTER DATABASE \(name) ALLOW_CONNECTIONS false;
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'
                """)
        }

        package func letIn() throws {
            try Self.administer("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
        }

        /// The address for a gateway whose leases and sessions end by a test's clock; by the database's if `takesGivenTime` is false.
        package func address(tokenKeyFile: String, takesGivenTime: Bool = true) -> DatabaseAddress? {
            var address = DatabaseAddress(url)
            address?.tokenKeyFile = tokenKeyFile
            address?.takesGivenTime = takesGivenTime
            return address
        }

        package func connect() throws -> PostgreSQLConnection { try PostgreSQLConnection(settings) }

        /// Waits until what was stored may be read: every open transaction of the server holds that up, also one of
        /// another test.
        package func settle() throws {
            let isSettled = try Self.administrators.get().use { try EventHorizon.settle($0, seconds: 20) }
            guard isSettled else { throw GatewayError(.storage, "a transaction of the server does not end") }
        }

        private static let administrators = Result {
            guard let server else { throw NoServer() }
            return PostgreSQLPool(try PostgreSQLSettings(server), connections: 16)
        }

        private static func administer(_ sql: String) throws {
            try administrators.get().use { try $0.execute(sql) }
        }
    }
#endif
