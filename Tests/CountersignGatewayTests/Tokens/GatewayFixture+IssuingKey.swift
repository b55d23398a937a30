import CountersignGatewayTesting
import CountersignJOSE
import CountersignSQLite
import Foundation

@testable import GatewayModel

extension GatewayFixture {
    private static let issuingKey = Result { try SigningKey.generate(.rs256) }

    /// Lets the gateway sign access tokens with a key of the process: making one takes longer than a test.
    func shareIssuingKey() throws {
        let now = Int64(Date().timeIntervalSince1970 * 1_000)
        let key = IssuingKey(try Self.issuingKey.get(), signsFromMilliseconds: now)
        let database = try SQLiteConnection(path: dataDirectory + "/token-keys.sqlite")
        try database.run(
            "INSERT INTO signing_key (id, pem, signs_from_ms) VALUES (?, ?, ?)", .text(key.id),
            .text(key.key.privatePEM), .integer(now))
    }
}
