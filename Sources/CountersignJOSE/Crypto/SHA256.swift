internal import COpenSSL
internal import CountersignCore

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
    // Looked up once: by name at each call it costs more than hashing a short text.
    // OpenSSL's algorithm objects are immutable and may be shared by threads.
    nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    /// The 32 bytes of the digest.
    package static func digest(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { output, count in
            let done = EVP_Digest(bytes.baseAddress, bytes.count, output.baseAddress, nil, algorithm, nil)
            precondition(done == 1, "OpenSSL has no SHA-256")
            count = 32
        }
    }

    /// The digest as four words, as they lie in memory; nothing is allocated.
    package static func words(_ bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { output in
            let done = countersign_sha256(
                bytes.baseAddress, bytes.count, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
            precondition(done == 1, "OpenSSL cannot hash")
        }
        return words
    }

    /// The 32 bytes of the digest.
    package static func digest(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { digest($0) } }

    /// The 32 bytes of the digest of the text's UTF-8.
    package static func digest(_ text: String) -> [UInt8] {
        var text = text
        return text.withUTF8 { digest(UnsafeRawBufferPointer($0)) }
    }

    /// The digest of bytes that come in pieces. Belongs to one thread.
    package final class Running {
        private let context: OpaquePointer

        package init() {
            guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex2(context, SHA256.algorithm, nil) == 1
            else {
                preconditionFailure("OpenSSL has no SHA-256")
            }
            self.context = context
        }

        deinit {
            EVP_MD_CTX_free(context)
        }

        package func add(_ bytes: UnsafeRawBufferPointer) {
            let done = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
            precondition(done == 1, "OpenSSL cannot hash")
        }

        /// The 32 bytes of the digest; nothing may be added after it.
        package func finish() -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: 32) { output, count in
                let done = EVP_DigestFinal_ex(context, output.baseAddress, nil)
                precondition(done == 1, "OpenSSL cannot hash")
                count = 32
            }
        }
    }
}
