package import CountersignGatewayTesting
import Foundation
package import GatewayIngest

extension TokenFamilyDirectory {
    /// Opens the token families of a storage, as a command in another process does.
    package convenience init(_ place: TestStorage) throws {
        try self.init(
            storage: place.open(), apps: place.openControl(),
            clock: { Int64(Date().timeIntervalSince1970 * 1_000) })
    }
}
