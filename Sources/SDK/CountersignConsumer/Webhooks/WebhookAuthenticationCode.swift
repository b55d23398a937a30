#if canImport(CryptoKit)
    internal import CryptoKit
    internal import Foundation
#else
    internal import CountersignCrypto
#endif

/// HMAC with SHA-256 (RFC 2104), by CryptoKit on Apple platforms and by the gateway's library elsewhere.
enum WebhookAuthenticationCode {
    /// Compares in constant time.
    static func isValid(_ code: [UInt8], of bytes: [UInt8], key: [UInt8]) -> Bool {
        #if canImport(CryptoKit)
            HMAC<SHA256>.isValidAuthenticationCode(
                code, authenticating: bytes, using: SymmetricKey(data: key))
        #else
            HMACSHA256.isValid(code, of: bytes, key: key)
        #endif
    }
}
