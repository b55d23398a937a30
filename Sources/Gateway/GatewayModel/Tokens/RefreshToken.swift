internal import CountersignCrypto

/// A refresh token: the token family, the generation, a secret and an authentication tag.
///
/// A child's secret derives from its parent, a stored nonce and a key outside of the database, so the parent
/// can be exchanged for the same child again. The database alone does not allow forging an active token.
package struct RefreshToken: Sendable {
    package static let familyBytes = 16
    package static let nonceBytes = 32
    private static let prefix = "csr_"
    private static let secretBytes = 32
    private static let bodyBytes = familyBytes + 4 + secretBytes
    private static let tagBytes = 32

    private let body: [UInt8]
    /// Authenticates the token before a database lookup.
    private let tag: [UInt8]

    package init(family: [UInt8], key: [UInt8]) {
        self.init(family: family, generation: 0, secret: .random(count: Self.secretBytes), key: key)
    }

    private init(family: [UInt8], generation: UInt32, secret: [UInt8], key: [UInt8]) {
        precondition(family.count == Self.familyBytes && secret.count == Self.secretBytes)
        body =
            family + (0..<4).map { UInt8(truncatingIfNeeded: generation >> (24 - 8 * UInt32($0))) } + secret
        tag = HMACSHA256.authenticate(Array("tag".utf8) + body, key: key)
    }

    /// Parses a presented token; nil when its tag is not valid.
    package init?(_ text: String, key: [UInt8]) {
        // Checks the length first and compares bytes, because comparing strings sent by clients may be slow
        // (``JSONNode/word``).
        guard text.utf8.count < 256, text.utf8.starts(with: Self.prefix.utf8),
            let encoded = String(text.utf8.dropFirst(Self.prefix.utf8.count)),
            let bytes = Base64URL.decode(encoded),
            bytes.count == Self.bodyBytes + Self.tagBytes
        else { return nil }
        body = Array(bytes[..<Self.bodyBytes])
        tag = Array(bytes[Self.bodyBytes...])
        guard HMACSHA256.isValid(tag, of: Array("tag".utf8) + body, key: key) else { return nil }
    }

    /// The successor of the token. The same nonce gives the same successor.
    package func child(nonce: [UInt8], key: [UInt8]) -> RefreshToken {
        RefreshToken(
            family: Array(body[..<Self.familyBytes]), generation: generation + 1,
            secret: HMACSHA256.authenticate(Array("child".utf8) + body + nonce, key: key), key: key)
    }

    package var familyID: String { "ses_" + Base64URL.encode(Array(body[..<Self.familyBytes])) }

    package var generation: UInt32 {
        body[Self.familyBytes..<Self.familyBytes + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    package var hash: [UInt8] { SHA256.digest(text) }

    package var text: String { Self.prefix + Base64URL.encode(body + tag) }
}

extension RefreshToken: CustomStringConvertible {
    /// Shows only the generation, because the token is a credential.
    package var description: String { "RefreshToken(generation: \(generation))" }
}
