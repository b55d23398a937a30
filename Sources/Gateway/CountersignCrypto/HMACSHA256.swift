internal import COpenSSL

/// HMAC with SHA-256 (RFC 2104; RFC 7518, section 3.2).
package enum HMACSHA256 {
    package static func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { output, count in
            let code = HMAC(
                EVP_sha256(), key, Int32(key.count), bytes, bytes.count, output.baseAddress, nil)
            precondition(code != nil, "OpenSSL has no SHA-256")
            count = 32
        }
    }

    /// Compares in constant time.
    package static func isValid(_ code: [UInt8], of bytes: [UInt8], key: [UInt8]) -> Bool {
        let expected = authenticate(bytes, key: key)
        return code.count == expected.count && CRYPTO_memcmp(code, expected, expected.count) == 0
    }
}
