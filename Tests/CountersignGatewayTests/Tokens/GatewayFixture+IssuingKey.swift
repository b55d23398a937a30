import CountersignGatewayTesting
import CountersignJOSE
import Foundation

@testable import GatewayModel
@testable import GatewayStorage

extension GatewayFixture {
    private static let issuingKey = Result { try SigningKey.generate(.rs256) }

    /// Lets the gateway sign access tokens with a key of the process: making one takes longer than a test.
    func shareIssuingKey() throws {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        _ = try place.open().openSecrets().rotate {
            IssuingKey(try Self.issuingKey.get(), signsFromMilliseconds: now)
        }
    }
}
