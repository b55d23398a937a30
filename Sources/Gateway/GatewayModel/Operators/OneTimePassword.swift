internal import CountersignCore
internal import CountersignCrypto

/// Time-based one-time passwords of six digits (TOTP, RFC 6238). Uses the parameters that every authenticator
/// app supports: SHA-1 and steps of 30 seconds since 1970.
package struct OneTimePassword: Sendable {
    package static let digits = 6
    static let stepMilliseconds: Int64 = 30_000

    /// 20 bytes, as RFC 4226, section 4, recommends.
    package let secret: [UInt8]

    package init(secret: [UInt8] = .random(count: 20)) {
        self.secret = secret
    }

    package var text: String { Base32.encode(secret) }

    package func uri(user: String, host: String?) -> String {
        func encoded(_ text: String) -> String {
            text.utf8.map { byte in
                byte.isASCIIAlphanumeric(or: "-._")
                    ? String(UnicodeScalar(byte))
                    : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }.joined()
        }
        let account = encoded(host.map { "\(user)@\($0)" } ?? user)
        return "otpauth://totp/Countersign:\(account)?secret=\(text)&issuer=Countersign&algorithm=SHA1"
            + "&digits=\(Self.digits)&period=\(Self.stepMilliseconds / 1000)"
    }

    /// The password for a counter (HOTP, RFC 4226, section 5.3).
    func code(_ counter: Int64, digits: Int = Self.digits) -> String {
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * $0)) }
        let hash = HMACSHA1.authenticate(message, key: secret)
        let offset = Int(hash[19] & 15)
        let number = hash[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text.suffix(digits)
    }

    /// The time step that the password is valid for. Accepts the current step and its neighbours, for clock
    /// skew and slow input (RFC 6238, section 5.2). Returns nil when the password is wrong or already used.
    package func step(of code: String, at milliseconds: Int64, after last: Int64) -> Int64? {
        let now = milliseconds / Self.stepMilliseconds
        return (now - 1...now + 1).first { step in
            step > last && Scrypt.isEqual(Array(self.code(step).utf8), Array(code.utf8))
        }
    }
}

/// Single-use passwords for a lost authenticator.
package enum RecoveryCode {
    package static let count = 10

    /// 80 random bits in base32, such as `k3fa-7x2c-…`.
    package static func random() -> String {
        let text = Array(Base32.encode(.random(count: 10)).lowercased())
        return stride(from: 0, to: text.count, by: 4).map { String(text[$0..<$0 + 4]) }.joined(separator: "-")
    }

    /// The stored hash. One round of SHA-256 suffices, because the code is random.
    package static func hash(_ code: String) -> [UInt8] {
        SHA256.digest(code.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: " ") })
    }
}
