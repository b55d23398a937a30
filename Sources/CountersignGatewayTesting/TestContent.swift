internal import CountersignCore
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// What a gateway's tests find in the place where it keeps everything.
package enum TestContent: Sendable {
    /// Tables without rows.
    case nothing
    /// The key that signs access tokens.
    case issuingKey
    /// That key, and the app `shop` with the key of `SharedKeys`, which requires tokens.
    case app

    /// Returns the write key of the app, if it has one.
    func fill(_ storage: any Storage) throws -> String? {
        guard self != .nothing else { return nil }
        _ = try storage.openSecrets().rotate {
            IssuingKey(try SharedKeys.tokenService(), signsFromMilliseconds: Milliseconds(Date()).count)
        }
        guard self == .app else { return nil }
        let apps = try storage.openControl(as: .account)
        let writeKey = try apps.createApp(id: "shop").writeKey
        _ = try apps.addKey(SharedKeys.app().publicKey.pem, description: "test key", to: "shop")
        try apps.setEnforcement(.required, for: "shop")
        return writeKey
    }
}
