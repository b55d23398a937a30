package import Foundation
package import GatewayModel
package import GatewayStorage

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

/// Where gateways and commands keep everything.
package enum StoragePlace: Sendable, CustomStringConvertible {
    /// A data directory, of which one gateway at a time runs.
    case folder(String)
    /// A database, of which any number of gateways run.
    case database(DatabaseAddress)

    /// Where a gateway of this configuration keeps it.
    package init(_ configuration: GatewayConfiguration) {
        self = configuration.database.map { .database($0) } ?? .folder(configuration.dataDirectory)
    }

    /// As it may be shown.
    package var description: String {
        switch self {
        case .folder(let path): path
        case .database(let address): address.description
        }
    }

    /// Opens it, creates what is missing and brings its schema to this version's. Throws `dataDirectory` or `storage`, and
    /// `invalid` for a database when the program was built without PostgreSQL.
    package func open(
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(GatewayError) -> any Storage {
        switch self {
        case .folder(let path): return try SQLiteStorage(dataDirectory: path, now: now)
        case .database(let address):
            #if POSTGRESQL
                return try PostgreSQLStorage(address, now: now)
            #else
                throw Self.notBuilt
            #endif
        }
    }

    #if !POSTGRESQL
        static let notBuilt = GatewayError(
            .invalid,
            "this program was built without PostgreSQL; build it without COUNTERSIGN_POSTGRESQL=0, with libpq-dev installed"
        )
    #endif
}
