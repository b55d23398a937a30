internal import COpenSSL

/// HMAC with SHA-1 (RFC 2104), for one-time passwords of authenticator apps (RFC 4226, section 5.2).
package enum HMACSHA1 {
    package static func authenticate(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 20) { output, count in
            let code = HMAC(EVP_sha1(), key, Int32(key.count), bytes, bytes.count, output.baseAddress, nil)
            precondition(code != nil, "OpenSSL has no SHA-1")
            count = 20
        }
    }
}
