package import GatewayModel
package import GatewayStorage

#if POSTGRESQL
    internal import GatewayPostgreSQL
#endif

extension StorageCopy {
    /// A copy from a data directory to a database or the reverse. Throws `invalid` for other combinations.
    package init(from source: StorageLocation, to target: StorageLocation) throws(GatewayError) {
        #if POSTGRESQL
            switch (source, target) {
            case (.folder(let path), .database(let address)):
                let folder = try FolderCopy(from: path)
                self.init(
                    from: folder, to: try Self.database(address, isSource: false), tables: folder.tables)
            case (.database(let address), .folder(let path)):
                let database = try Self.database(address, isSource: true)
                try GatewayError.storing { try database.checkStopped() }
                let log = try GatewayError.storing { try database.log() }
                let folder = try FolderCopy(to: path, copyOf: log)
                self.init(from: database, to: folder, tables: folder.tables)
            default:
                throw GatewayError(
                    .invalid,
                    "a copy goes between a data directory and a database: give one of each, such as ./countersign-data and postgresql://host/countersign"
                )
            }
        #else
            throw StorageLocation.notBuilt
        #endif
    }

    #if POSTGRESQL
        private static func database(
            _ address: DatabaseAddress, isSource: Bool
        ) throws(GatewayError) -> DatabaseCopy {
            try DatabaseCopy(
                PostgreSQLSettings(address), tokenKeyFile: address.tokenKeyFile, isSource: isSource)
        }
    #endif
}
