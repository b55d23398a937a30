internal import CountersignCore
internal import CountersignGateway
internal import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

package enum TestEngine: String, Sendable {
    case sqlite
    case postgresql

    /// The engine for tests that do not choose one. `COUNTERSIGN_TEST_STORAGE=postgresql` selects PostgreSQL.
    package static let standard: TestEngine = {
        guard let name = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_STORAGE"] else {
            return .sqlite
        }
        // A typo must not silently test SQLite.
        guard let engine = TestEngine(rawValue: name) else {
            fatalError("COUNTERSIGN_TEST_STORAGE is \(name); it may be sqlite or postgresql")
        }
        return engine
    }()
}

/// The location of a test gateway's data: a folder, and with PostgreSQL a database. Both are deleted with this object.
package final class TestStorage: Sendable {
    /// Holds SQLite's files, or the token key with PostgreSQL.
    package let folder: String
    #if POSTGRESQL
        private let database: TestDatabase?
        /// Opened once, because it has its own connections.
        private let storage: (any Storage)?
    #endif

    package let writeKey: String?

    package init(_ content: TestContent = .nothing) throws {
        folder =
            FileManager.default.temporaryDirectory.appendingPathComponent("countersign-" + UUID().uuidString)
            .path
        #if POSTGRESQL
            let database = TestEngine.standard == .postgresql ? try TestDatabase() : nil
            self.database = database
            if let database {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
                let configuration = Self.configuration(
                    of: folder, address: Self.address(of: database, folder))
                let storage = try StorageLocation(configuration).open()
                writeKey = try content.fill(storage)
                self.storage = storage
                return
            }
            storage = nil
        #else
            guard TestEngine.standard == .sqlite else {
                throw GatewayError(.invalid, "the tests were built without PostgreSQL")
            }
        #endif
        writeKey = try FolderTemplate.copy(content, to: folder)
    }

    deinit {
        #if POSTGRESQL
            database?.drop()
        #endif
        try? FileManager.default.removeItem(atPath: folder)
    }

    package var configuration: GatewayConfiguration { Self.configuration(of: folder, address: address) }

    private static func configuration(of folder: String, address: DatabaseAddress?) -> GatewayConfiguration {
        var configuration = GatewayConfiguration(dataDirectory: folder)
        configuration.port = 0
        configuration.stopGraceSeconds = 1
        configuration.database = address
        return configuration
    }

    package var address: DatabaseAddress? {
        #if POSTGRESQL
            return database.flatMap { Self.address(of: $0, folder) }
        #else
            return nil
        #endif
    }

    #if POSTGRESQL
        private static func address(of database: TestDatabase, _ folder: String) -> DatabaseAddress? {
            database.address(tokenKeyFile: DatabaseAddress.tokenKeyFile(in: folder))
        }
    #endif

    /// With SQLite, opens the storage again, like a command. With PostgreSQL, returns the storage opened at the start.
    package func open() throws(GatewayError) -> any Storage {
        #if POSTGRESQL
            if let storage { return storage }
        #endif
        return try StorageLocation(configuration).open()
    }

    package func openControl(as actor: Operator = .account) throws(GatewayError) -> AppDirectory {
        try open().openControl(as: actor)
    }

    /// Waits until stored events are readable by followers. With SQLite they are readable immediately.
    package func waitForTransactions() throws {
        #if POSTGRESQL
            try database?.waitForTransactions()
        #endif
    }

    /// A connection for tests of table contents. The table of events, and an event's number in it, have different names
    /// in the two engines. `file` is the name of SQLite's file, such as `events`.
    package func connection(to file: String) throws -> any SQLConnection {
        #if POSTGRESQL
            if let database { return try database.connect() }
        #endif
        return try SQLiteConnection(path: "\(folder)/\(file).sqlite")
    }

    package func events(_ columns: [String], where condition: String? = nil) throws -> [[String?]] {
        let (table, order) =
            TestEngine.standard == .sqlite ? ("stored_event", "seq") : ("event", "position")
        let filter = condition.map { " WHERE \($0)" } ?? ""
        return try connection(to: "events").all(
            "SELECT \(columns.joined(separator: ", ")) FROM \(table)\(filter) ORDER BY \(order)"
        ) { row in
            columns.indices.map { row.optionalText(Int32($0)) }
        }
    }
}
