internal import CountersignCore
internal import CountersignJOSE

/// Passwords of six digits that are valid for half a minute (TOTP, RFC 6238), as every authenticator app makes them:
/// SHA-1, steps of 30 seconds since 1970.
package struct OneTimePassword: Sendable {
    package static let digits = 6
    static let stepMilliseconds: Int64 = 30_000

    /// 20 bytes, as RFC 4226, section 4, recommends.
    package let secret: [UInt8]

    package init(secret: [UInt8] = .random(count: 20)) {
        self.secret = secret
    }

    /// What is typed where no camera is: the secret in base32.
    package var text: String { Base32.encode(secret) }

    /// What an authenticator app reads out of a QR code.
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

    /// The password of a counter (HOTP, RFC 4226, section 5.3).
    func code(_ counter: Int64, digits: Int = Self.digits) -> String {
        let message = (0..<8).map { UInt8(truncatingIfNeeded: counter >> (56 - 8 * $0)) }
        let hash = HMACSHA1.authenticate(message, key: secret)
        let offset = Int(hash[19] & 15)
        let number = hash[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        var text = ""
        var rest = number
        for _ in 0..<digits {
            text = String(rest % 10) + text
            rest /= 10
        }
        return text
    }

    /// The step whose password this is: the present one, or its neighbours, for clocks that differ and people who type
    /// slowly (RFC 6238, section 5.2). Returns nil when the password is wrong or was used.
    package func step(of code: String, at milliseconds: Int64, after last: Int64) -> Int64? {
        let now = milliseconds / Self.stepMilliseconds
        return (now - 1...now + 1).first { step in
            step > last && Scrypt.isEqual(Array(self.code(step).utf8), Array(code.utf8))
        }
    }
}

/// One-time passwords for when the phone is lost.
package enum RecoveryCode {
    package static let count = 10

    /// Eighty bits, such as `k3fa-9x2c-…`.
    package static func random() -> String {
        let text = Array(Base32.encode(.random(count: 10)).lowercased())
        return stride(from: 0, to: text.count, by: 4).map { String(text[$0..<$0 + 4]) }.joined(separator: "-")
    }

    /// What is kept of it: it is random enough to be hashed once.
    package static func hash(_ code: String) -> [UInt8] {
        SHA256.digest(code.lowercased().utf8.filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: " ") })
    }
}
