internal import CountersignCore
internal import CountersignGateway
internal import CountersignSQLite
internal import Foundation
package import GatewayModel
package import GatewayStorage

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

/// What the tests of gateways keep data in.
package enum TestEngine: String, Sendable {
    case sqlite
    case postgresql

    /// What tests take that are about neither. `COUNTERSIGN_TEST_STORAGE=postgresql` runs them on the server that
    /// `scripts/postgresql.sh run` has started.
    package static let standard: TestEngine = {
        guard let name = ProcessInfo.processInfo.environment["COUNTERSIGN_TEST_STORAGE"] else {
            return .sqlite
        }
        // A typo would silently test SQLite again.
        guard let engine = TestEngine(rawValue: name) else {
            fatalError("COUNTERSIGN_TEST_STORAGE is \(name); it may be sqlite or postgresql")
        }
        return engine
    }()
}

/// Where a test's gateway keeps everything: a folder of its own, and on PostgreSQL a database too. Both go with this object.
package final class TestPlace: Sendable {
    /// A folder, in which SQLite has its files and PostgreSQL the token key.
    package let folder: String
    #if POSTGRESQL
        private let database: TestDatabase?
        /// Opened once: it has connections of its own.
        private let storage: (any Storage)?
    #endif

    /// The write key of the app; nil where there is none yet.
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
                let storage = try StoragePlace(configuration).open()
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

    /// The configuration of a gateway here, on any free port.
    package var configuration: GatewayConfiguration { Self.configuration(of: folder, address: address) }

    private static func configuration(of folder: String, address: DatabaseAddress?) -> GatewayConfiguration {
        var configuration = GatewayConfiguration(dataDirectory: folder)
        configuration.port = 0
        configuration.stopGraceSeconds = 1
        configuration.database = address
        return configuration
    }

    /// Nil on SQLite.
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

    /// The storage beside that of the gateway, as commands have it.
    package func open() throws(GatewayError) -> any Storage {
        #if POSTGRESQL
            if let storage { return storage }
        #endif
        return try StoragePlace(configuration).open()
    }

    /// The apps, changed in the name of `actor`.
    package func openControl(as actor: Operator = .account) throws(GatewayError) -> AppDirectory {
        try open().openControl(as: actor)
    }

    /// Waits until those who follow events may read what was stored before. On SQLite they always may.
    package func settle() throws {
        #if POSTGRESQL
            try database?.settle()
        #endif
    }

    /// For tests of what is kept in which table: their names and columns are the same in both engines, but for an event's
    /// number. `file` is SQLite's, such as `events`.
    package func connection(to file: String) throws -> any SQLConnection {
        #if POSTGRESQL
            if let database { return try database.connect() }
        #endif
        return try SQLiteConnection(path: "\(folder)/\(file).sqlite")
    }

    /// What is kept of all events in the order in which they were stored, as text, by the names of columns.
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
