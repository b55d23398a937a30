package import CountersignJOSE

/// RSA keys shared by all tests of a process, because generating one takes longer than most tests.
package enum SharedKeys {
    private static let ofApp = Result { try SigningKey.generate(.rs256) }
    private static let ofStranger = Result { try SigningKey.generate(.rs256) }
    private static let ofTokenService = Result { try SigningKey.generate(.rs256) }

    package static func app() throws -> SigningKey { try ofApp.get() }

    package static func stranger() throws -> SigningKey { try ofStranger.get() }

    package static func tokenService() throws -> SigningKey { try ofTokenService.get() }
}
