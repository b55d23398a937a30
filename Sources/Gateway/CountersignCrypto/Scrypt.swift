internal import COpenSSL

/// scrypt (RFC 7914), a password hash that makes guessing cost memory and time.
package enum Scrypt {
    package struct Cost: Sendable, Equatable {
        /// N: a power of two.
        package var n: UInt64
        package var r: UInt64
        package var p: UInt64

        package init(n: UInt64, r: UInt64, p: UInt64) {
            self.n = n
            self.r = r
            self.p = p
        }

        /// 32 MiB and about a tenth of a second.
        package static let password = Cost(n: 1 << 15, r: 8, p: 1)
    }

    /// Returns 32 bytes, or nil if OpenSSL rejects the cost parameters.
    package static func derive(_ password: [UInt8], salt: [UInt8], cost: Cost) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: 32)
        let done = password.withUnsafeBytes { password in
            EVP_PBE_scrypt(
                password.bindMemory(to: CChar.self).baseAddress, password.count, salt, salt.count, cost.n,
                cost.r, cost.p, 256 << 20, &output, output.count)
        }
        if done != 1 { ERR_clear_error() }
        return done == 1 ? output : nil
    }

    /// Compares in constant time.
    package static func isEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
    }
}
