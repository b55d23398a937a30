import CountersignCore
import CountersignGatewayTesting
import Foundation
import Testing

@testable import GatewayPostgreSQL

/// All tests that need a server, one at a time: whoever reads events waits for every open transaction of the server.
@Suite(.serialized, .enabled(if: TestDatabase.server != nil)) struct PostgreSQLTests {}

/// A database of its own in the server that `scripts/postgresql.sh run` has started, dropped at the end.
final class TestDatabase: Sendable {
    /// The URL of a superuser's database; nil where there is no server to test with.
    static let server = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_POSTGRESQL"]

    let name: String
    let url: String
    let settings: PostgreSQLSettings

    /// A migrated database of which the others are copies, which take a quarter of the time.
    private static let template = Result { try TestDatabase(copyOf: nil, migrated: true) }

    private convenience init(migrated: Bool) throws {
        try self.init(copyOf: migrated ? Self.template.get() : nil, migrated: false)
    }

    private init(copyOf original: TestDatabase?, migrated: Bool) throws {
        let server = try #require(Self.server)
        name = "test_" + UUIDv7.make().replacing("-", with: "")
        let admin = try PostgreSQLConnection(try PostgreSQLSettings(server))
        try admin.execute("CREATE DATABASE \(name)" + (original.map { " TEMPLATE \($0.name)" } ?? ""))
        var url = try #require(URLComponents(string: server))
        url.path = "/" + name
        self.url = try #require(url.string)
        settings = try PostgreSQLSettings(self.url)
        if migrated { try PostgreSQLSchema.migrate(settings) }
    }

    /// Runs `body` with a database, which is gone afterwards.
    static func use(migrated: Bool = true, _ body: (TestDatabase) throws -> Void) throws {
        let database = try TestDatabase(migrated: migrated)
        defer { database.drop() }
        try body(database)
    }

    /// Its tasks have threads of their own, which may wait for the server.
    static func use(
        migrated: Bool = true, _ body: @Sendable (TestDatabase) async throws -> Void
    ) async throws {
        let database = try TestDatabase(migrated: migrated)
        defer { database.drop() }
        guard #available(macOS 15, *) else { return try await body(database) }
        try await withTaskExecutorPreference(ThreadExecutor()) { try await body(database) }
    }

    private func drop() {
        guard let server = Self.server, let settings = try? PostgreSQLSettings(server),
            let admin = try? PostgreSQLConnection(settings)
        else { return }
        try? admin.execute("DROP DATABASE \(name) WITH (FORCE)")
    }

    /// Lets nobody in, and ends the connections that there are.
    func cutOff() throws {
        let admin = try PostgreSQLConnection(try PostgreSQLSettings(try #require(Self.server)))
        try admin.execute(
            """
            ALTER DATABASE \(name) ALLOW_CONNECTIONS false;
            SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'
            """)
    }

    func letIn() throws {
        let admin = try PostgreSQLConnection(try PostgreSQLSettings(try #require(Self.server)))
        try admin.execute("ALTER DATABASE \(name) ALLOW_CONNECTIONS true")
    }

    func connect() throws -> PostgreSQLConnection { try PostgreSQLConnection(settings) }
}
