internal import CountersignJOSE

/// A refresh token of ours: which token family and which generation it belongs to, a secret, and proof that we made it.
///
/// The secret of a child is derived from its parent, a random nonce that is stored, and a key that lies outside of the
/// database of token families. So whoever presents a parent can be given its child again, while nobody can make a token
/// that is in use from what is stored: of each token that is only a hash.
package struct RefreshToken: Sendable {
    package static let sessionBytes = 16
    package static let nonceBytes = 32
    private static let prefix = "csr_"
    private static let secretBytes = 32
    private static let bodyBytes = sessionBytes + 4 + secretBytes
    private static let tagBytes = 32

    /// Family, generation and secret, in this order.
    private let body: [UInt8]
    /// Proves that we made it, before the database is asked.
    private let tag: [UInt8]

    /// The first token of a token family.
    package init(session: [UInt8], key: [UInt8]) {
        self.init(session: session, generation: 0, secret: .random(count: Self.secretBytes), key: key)
    }

    private init(session: [UInt8], generation: UInt32, secret: [UInt8], key: [UInt8]) {
        precondition(session.count == Self.sessionBytes && secret.count == Self.secretBytes)
        body =
            session + (0..<4).map { UInt8(truncatingIfNeeded: generation >> (24 - 8 * UInt32($0))) } + secret
        tag = HMACSHA256.authenticate(Array("tag".utf8) + body, key: key)
    }

    /// Reads a token as presented; nil when we did not make it.
    package init?(_ text: String, key: [UInt8]) {
        // By bytes, and the length first: what a stranger sends instead may take long to compare (``JSONNode/word``).
        guard text.utf8.count < 256, text.utf8.starts(with: Self.prefix.utf8),
            let encoded = String(text.utf8.dropFirst(Self.prefix.utf8.count)),
            let bytes = Base64URL.decode(encoded),
            bytes.count == Self.bodyBytes + Self.tagBytes
        else { return nil }
        body = Array(bytes[..<Self.bodyBytes])
        tag = Array(bytes[Self.bodyBytes...])
        guard HMACSHA256.isValid(tag, of: Array("tag".utf8) + body, key: key) else { return nil }
    }

    /// The token that takes this one's place; the same for the same nonce.
    package func child(nonce: [UInt8], key: [UInt8]) -> RefreshToken {
        RefreshToken(
            session: Array(body[..<Self.sessionBytes]), generation: generation + 1,
            secret: HMACSHA256.authenticate(Array("child".utf8) + body + nonce, key: key), key: key)
    }

    /// The family's id as it is stored and shown.
    package var sessionID: String { "ses_" + Base64URL.encode(Array(body[..<Self.sessionBytes])) }

    /// How many exchanges the token family had before it.
    package var generation: UInt32 {
        body[Self.sessionBytes..<Self.sessionBytes + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// What is stored of it.
    package var hash: [UInt8] { SHA256.digest(text) }

    /// As the client keeps it.
    package var text: String { Self.prefix + Base64URL.encode(body + tag) }
}

extension RefreshToken: CustomStringConvertible {
    /// Only the generation: the token is a credential.
    package var description: String { "RefreshToken(generation: \(generation))" }
}
