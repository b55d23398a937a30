package import CountersignJOSE

/// The RSA keys that all tests of a process share: making one takes longer than most of them.
package enum SharedKeys {
    private static let ofApp = Result { try SigningKey.generate(.rs256) }
    private static let ofStranger = Result { try SigningKey.generate(.rs256) }
    private static let ofTokenService = Result { try SigningKey.generate(.rs256) }

    /// The private half of the key that a fixture's app has.
    package static func app() throws -> SigningKey { try ofApp.get() }

    /// The private half of a key that no app has.
    package static func stranger() throws -> SigningKey { try ofStranger.get() }

    /// Signs access tokens.
    package static func tokenService() throws -> SigningKey { try ofTokenService.get() }
}
