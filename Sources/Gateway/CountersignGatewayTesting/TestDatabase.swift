#if POSTGRESQL
    internal import CountersignCore
    internal import Foundation
    package import GatewayModel
    package import GatewayPostgreSQL

    /// A separate database in the server that `scripts/postgresql.sh run` has started, until ``drop()``.
    package final class TestDatabase: Sendable {
        package struct NoServer: Error, CustomStringConvertible {
            package let description = "no server to test with: run this by scripts/postgresql.sh run"
        }

        /// The URL of a superuser's database; nil without a server.
        package static let server = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_POSTGRESQL"]

        package let name: String
        package let url: String
        package let settings: PostgreSQLSettings

        /// A migrated database. Copying it takes a quarter of the time of a migration.
        private static let template = Result { try TestDatabase(copyOf: nil, migrated: true) }

        package convenience init(migrated: Bool = true) throws {
            try self.init(copyOf: migrated ? Self.template.get() : nil, migrated: false)
        }

        /// A database without tables, with a text encoding such as `LATIN1`.
        package convenience init(encoding: String) throws {
            try self.init(
                copyOf: nil, migrated: false, options: " ENCODING '\(encoding)' LOCALE 'C' TEMPLATE template0"
            )
        }

        private init(copyOf original: TestDatabase?, migrated: Bool, options: String = "") throws {
            guard let server = Self.server, var url = URLComponents(string: server) else { throw NoServer() }
            name = "test_" + UUIDv7.make().replacing("-", with: "")
            // The default strategy `WAL_LOG` takes three times as long. While it runs, commits of other tests
            // do not become visible.
            let copy = original.map { " TEMPLATE \($0.name) STRATEGY FILE_COPY" } ?? ""
            try Self.administer("CREATE DATABASE \(name)\(copy)\(options)")
            url.path = "/" + name
            self.url = url.string ?? server
            settings = try PostgreSQLSettings(self.url)
            if migrated { try PostgreSQLSchema.migrate(settings) }
            // The copy has the event log id of the template, but the id must be unique.
            if original != nil {
                try connect().execute("UPDATE event_log SET id = uuid_send(gen_random_uuid())")
            }
        }

        package static func use(migrated: Bool = true, _ body: (TestDatabase) throws -> Void) throws {
            let database = try TestDatabase(migrated: migrated)
            defer { database.drop() }
            try body(database)
        }

        /// Runs the tasks on separate threads, which may block on the server.
        package static func use(
            migrated: Bool = true, _ body: @Sendable (TestDatabase) async throws -> Void
        ) async throws {
            let database = try TestDatabase(migrated: migrated)
            defer { database.drop() }
            try await onOwnThreads { try await body(database) }
        }

        package func drop() {
            try? Self.administer("DROP DATABASE \(name) WITH (FORCE)")
        }

        /// Rejects new connections and closes existing ones.
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

        /// The address for a gateway whose leases and sessions use a test's clock, or the database's if
        /// `takesGivenTime` is false.
        package func address(tokenKeyFile: String, takesGivenTime: Bool = true) -> DatabaseAddress? {
            var address = DatabaseAddress(url)
            address?.tokenKeyFile = tokenKeyFile
            address?.takesGivenTime = takesGivenTime
            return address
        }

        package func connect() throws -> PostgreSQLConnection { try PostgreSQLConnection(settings) }

        /// Waits until stored events are readable. Any open transaction in the server delays this, also of other tests.
        package func waitForTransactions() throws {
            let haveEnded = try Self.administrators.get().use {
                try EventHorizon.waitForTransactions($0, seconds: 20)
            }
            guard haveEnded else { throw GatewayError(.storage, "a transaction of the server does not end") }
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
