package import Foundation
package import GatewayModel
package import GatewayStorage

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

package enum StorageLocation: Sendable, CustomStringConvertible {
    /// A data directory, used by one gateway at a time.
    case folder(String)
    /// A database, shared by any number of gateways.
    case database(DatabaseAddress)

    package init(_ configuration: GatewayConfiguration) {
        self = configuration.database.map { .database($0) } ?? .folder(configuration.dataDirectory)
    }

    /// Contains no credentials.
    package var description: String {
        switch self {
        case .folder(let path): path
        case .database(let address): address.description
        }
    }

    /// Opens the storage, creating and migrating it if necessary. Throws `dataDirectory`, `storage`, `conflict` for an
    /// unfinished copy or an unusable database, and `invalid` for a database if built without PostgreSQL.
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
