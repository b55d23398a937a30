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
        let hash = idle.withLock { $0.popLast() } ?? Idle(hash: Running())
        defer { idle.withLock { $0.append(hash) } }
        return hash.hash.words(of: bytes)
    }

    /// What nobody uses now: as many as were used at the same time.
    private static let idle = Lock<[Idle]>([])

    /// Used by whoever took it out, and by nobody else.
    private struct Idle: @unchecked Sendable {
        let hash: Running
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

        /// The digest of these bytes alone, as four words as they lie in memory. Reuses the context, which OpenSSL would
        /// otherwise allocate for every digest.
        fileprivate func words(of bytes: UnsafeRawBufferPointer) -> (UInt64, UInt64, UInt64, UInt64) {
            var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
            withUnsafeMutableBytes(of: &words) { output in
                let done =
                    EVP_DigestInit_ex2(context, nil, nil) == 1
                    && EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
                    && EVP_DigestFinal_ex(
                        context, output.baseAddress?.assumingMemoryBound(to: UInt8.self), nil) == 1
                precondition(done, "OpenSSL cannot hash")
            }
            return words
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
