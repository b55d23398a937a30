internal import COpenSSL
internal import CountersignCore

/// SHA-256 (FIPS 180-4).
package enum SHA256 {
    // Fetched once: fetching by name costs more than hashing a short text. OpenSSL's algorithm objects are
    // immutable and may be shared by threads.
    nonisolated(unsafe) package static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

    package static func digest(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { output, count in
            let done = EVP_Digest(bytes.baseAddress, bytes.count, output.baseAddress, nil, algorithm, nil)
            precondition(done == 1, "OpenSSL has no SHA-256")
            count = 32
        }
    }

    /// The 32 bytes of the digest as four words in the machine's byte order. Allocates nothing.
    package static func words(_ bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { output in
            let done = countersign_sha256(
                bytes.baseAddress, bytes.count, output.baseAddress?.assumingMemoryBound(to: UInt8.self))
            precondition(done == 1, "OpenSSL cannot hash")
        }
        return words
    }

    package static func digest(_ bytes: [UInt8]) -> [UInt8] { bytes.withUnsafeBytes { digest($0) } }

    package static func digest(_ text: String) -> [UInt8] {
        var text = text
        return text.withUTF8 { digest(UnsafeRawBufferPointer($0)) }
    }

    /// Digests data that arrives in pieces. Not thread-safe.
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

        /// Returns the digest. Call only once, and add nothing afterwards.
        package func finish() -> [UInt8] {
            [UInt8](unsafeUninitializedCapacity: 32) { output, count in
                let done = EVP_DigestFinal_ex(context, output.baseAddress, nil)
                precondition(done == 1, "OpenSSL cannot hash")
                count = 32
            }
        }
    }
}
