internal import CountersignCore
package import CountersignCrypto

/// A stored password hash: salt, cost and the output of scrypt (RFC 7914).
package struct PasswordHash: Sendable, Equatable {
    /// Valid length of a password, in bytes of UTF-8.
    package static let range = 12...1_024

    /// `scrypt$N$r$p$salt$hash`, the last two in base64url.
    package let text: String

    package init(text: String) {
        self.text = text
    }

    /// Hashes a password. `Scrypt.Cost.password` takes about a tenth of a second.
    package init(_ password: String, cost: Scrypt.Cost) {
        let salt = [UInt8].random(count: 16)
        guard let hash = Scrypt.derive(Array(password.utf8), salt: salt, cost: cost) else {
            preconditionFailure("OpenSSL has no scrypt")
        }
        self.init(salt: salt, hash: hash, cost: cost)
    }

    private init(salt: [UInt8], hash: [UInt8], cost: Scrypt.Cost) {
        text =
            "scrypt$\(cost.n)$\(cost.r)$\(cost.p)$\(Base64URL.encode(salt))$\(Base64URL.encode(hash))"
    }

    /// The hash of an unknown password. For an unknown user, comparing with it takes as long as with a user's hash.
    package static func ofNobody(cost: Scrypt.Cost) -> PasswordHash {
        PasswordHash(salt: .random(count: 16), hash: .random(count: 32), cost: cost)
    }

    package func matches(_ password: String) -> Bool {
        let parts = text.split(separator: "$")
        guard parts.count == 6, parts[0] == "scrypt", let n = UInt64(parts[1]), let r = UInt64(parts[2]),
            let p = UInt64(parts[3]), let salt = Base64URL.decode(String(parts[4])),
            let hash = Base64URL.decode(String(parts[5])),
            let found = Scrypt.derive(Array(password.utf8), salt: salt, cost: .init(n: n, r: r, p: p))
        else { return false }
        return Scrypt.isEqual(found, hash)
    }
}
