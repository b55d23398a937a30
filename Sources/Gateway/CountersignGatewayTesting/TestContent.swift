internal import CountersignCore
internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The initial content of a test's storage.
package enum TestContent: Sendable {
    case nothing
    /// The signing key for access tokens.
    case issuingKey
    /// The signing key, and the app `shop`, which requires tokens and has the key of `SharedKeys`.
    case app

    /// Returns the app's write key, if the content has an app.
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
