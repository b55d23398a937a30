package import CountersignGatewayTesting
import Foundation
package import GatewayIngest

extension SessionDirectory {
    /// The token families of a place, as an operator in another process has them.
    package convenience init(_ place: TestStorage) throws {
        try self.init(
            storage: place.open(), apps: place.openControl(),
            clock: { Int64(Date().timeIntervalSince1970 * 1_000) })
    }
}
