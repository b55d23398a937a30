package import GatewayModel

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

/// The schema of a database, for whoever brings it up to date by hand.
package enum DatabaseSchema {
    #if POSTGRESQL
        /// What this program works with.
        package static var newest: Int { PostgreSQLSchema.newest }

        /// What a database has; 0 for an empty one. Throws `storage`, and `conflict` for one of a newer version
        /// than this.
        package static func version(of address: DatabaseAddress) throws(GatewayError) -> Int {
            try PostgreSQLSchema.version(try PostgreSQLSettings(address))
        }

        /// Brings it to ``newest``. Throws `storage`.
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
            throw StoragePlace.notBuilt
        }

        package static func migrate(_ address: DatabaseAddress) throws(GatewayError) {
            throw StoragePlace.notBuilt
        }
    #endif
}
