internal import COpenSSL

/// Owns an OpenSSL key. `@unchecked Sendable`: OpenSSL counts references atomically, and the key never changes.
package final class EVPKey: @unchecked Sendable {
    package let pointer: OpaquePointer

    package init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// The public half as SubjectPublicKeyInfo (RFC 5280, section 4.1).
    package var subjectPublicKeyInfo: [UInt8] { derBytes { i2d_PUBKEY(self.pointer, $0) } }
}

/// The output of an `i2d_` function of OpenSSL; empty if it fails.
package func derBytes(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8] {
    let length = Int(encode(nil))
    guard length > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
        var position = buffer.baseAddress
        count = max(0, Int(encode(&position)))
    }
}
