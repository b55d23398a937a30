package import GatewayModel

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

/// The schema of a database, for manual migration.
package enum DatabaseSchema {
    #if POSTGRESQL
        /// The version that this program uses.
        package static var newest: Int { PostgreSQLSchema.newest }

        /// The version of a database; 0 for an empty one. Throws `storage`, and `conflict` for a newer
        /// version than this program's.
        package static func version(of address: DatabaseAddress) throws(GatewayError) -> Int {
            try PostgreSQLSchema.version(try PostgreSQLSettings(address))
        }

        /// Migrates the database to ``newest``. Throws `storage`.
        package static func migrate(_ address: DatabaseAddress) throws(GatewayError) {
            do {
                try PostgreSQLSchema.migrate(try PostgreSQLSettings(address))
            } catch {
                throw error as? GatewayError ?? GatewayError(.storage, "\(error)")
            }
        }
    #else
        package static let newest = 0

        package static func version(of address: DatabaseAddress) throws(GatewayError) -> Int {
            throw StorageLocation.notBuilt
        }

        package static func migrate(_ address: DatabaseAddress) throws(GatewayError) {
            throw StorageLocation.notBuilt
        }
    #endif
}
