package import GatewayModel

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

package enum DatabaseSchema {
    #if POSTGRESQL
        package static var newest: Int { PostgreSQLSchema.newest }

        /// 0 for an empty database. Throws `storage`, or `conflict` for an unknown schema or an encoding other than UTF-8.
        package static func version(of address: DatabaseAddress) throws(GatewayError) -> Int {
            try PostgreSQLSchema.version(try PostgreSQLSettings(address))
        }

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
