package import CountersignJOSE

/// A password as it is kept: salt, cost and what scrypt (RFC 7914) makes of them.
package struct PasswordHash: Sendable, Equatable {
    /// What a password may have, in bytes of UTF-8.
    package static let range = 12...1_024

    /// `scrypt$N$r$p$salt$hash`, the last two in base64url.
    package let text: String

    package init(text: String) {
        self.text = text
    }

    /// Hashes a password; at the standard cost that takes about a tenth of a second.
    package init(_ password: String, cost: Scrypt.Cost = .password) {
        let salt = [UInt8].random(count: 16)
        guard let hash = Scrypt.derive(Array(password.utf8), salt: salt, cost: cost) else {
            preconditionFailure("OpenSSL has no scrypt")
        }
        text =
            "scrypt$\(cost.n)$\(cost.r)$\(cost.p)$\(Base64URL.encode(salt))$\(Base64URL.encode(hash))"
    }

    /// What is compared against when there is no such user, so that an answer takes as long as for one.
    package static let ofNobody = PasswordHash(
        "nobody has this password, which is only here to be compared with")

    /// True when this is the password.
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
