internal import COpenSSL
internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON

/// Finds the key of a ring that verifies a signature. `@unchecked Sendable`: one thread at a time uses a
/// workspace, and the other properties are immutable or locked.
final class SignatureVerifier: @unchecked Sendable {
    /// The reusable state for verifying a token on one thread. A workspace belongs to one ring permanently,
    /// because each `EVP_PKEY_CTX` is made for one key. (With OpenSSL 3.0, `EVP_DigestVerifyInit` on a used
    /// `EVP_MD_CTX` returns success but continues to verify with the old key.)
    final class Workspace {
        let parser = StrictJSONParser(
            maximumBytes: CompactJWS.maximumBytes, maximumDepth: CompactJWS.maximumDepth)
        let scratch = UnsafeMutablePointer<UInt8>.allocate(capacity: CompactJWS.maximumBytes + 1)
        fileprivate let digest: OpaquePointer
        fileprivate var contexts: [OpaquePointer?]

        fileprivate init(slots: Int) {
            guard let digest = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
            self.digest = digest
            contexts = Array(repeating: nil, count: slots)
        }

        deinit {
            scratch.deallocate()
            EVP_MD_CTX_free(digest)
            for context in contexts { EVP_PKEY_CTX_free(context) }
        }
    }

    private struct Candidate {
        let entry: Int
        let slot: Int
        let key: EVPKey
        let signatureBytes: Int
    }

    private let candidates: [SignatureScheme: [Candidate]]
    private let slots: Int
    private let idle = Lock<[Workspace]>([])

    init(_ ring: KeyRing) {
        var candidates: [SignatureScheme: [Candidate]] = [:]
        var slots = 0
        for (entry, key) in ring.entries.map(\.key).enumerated() {
            guard let key else { continue }
            for scheme in SignatureScheme.allCases where key.verifies(scheme) {
                let bytes = key.keyType == "RSA" ? (key.bits + 7) / 8 : 64
                let candidate = Candidate(entry: entry, slot: slots, key: key.key, signatureBytes: bytes)
                candidates[scheme, default: []].append(candidate)
                slots += 1
            }
        }
        self.candidates = candidates
        self.slots = slots
    }

    func withWorkspace<Result>(_ body: (Workspace) -> Result) -> Result {
        let workspace = idle.withLock { $0.popLast() } ?? Workspace(slots: slots)
        let result = body(workspace)
        idle.withLock { if $0.count < 64 { $0.append(workspace) } }
        return result
    }

    func hasKey(for scheme: SignatureScheme) -> Bool { candidates[scheme] != nil }

    /// The index of the ring entry that verifies `signature`; nil if no key does. Tries `preferred` first.
    func entry(
        verifying signature: UnsafeBufferPointer<UInt8>, of input: UnsafeBufferPointer<UInt8>,
        by scheme: SignatureScheme, preferred: Int?, in workspace: Workspace
    ) -> Int? {
        guard let keys = candidates[scheme] else { return nil }
        if scheme == .ed25519 {
            return Self.first(of: keys, preferred: preferred) {
                Self.verifyEd25519(signature, input, with: $0)
            }
        }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32 + ECDSASignature.maximumDERCount) {
            buffer -> Int? in
            guard let hash = buffer.baseAddress else { return nil }
            var proof = signature
            if scheme == .ecdsaP256 {
                guard let length = ECDSASignature.writeDER(raw: signature, to: hash + 32) else { return nil }
                proof = UnsafeBufferPointer(start: hash + 32, count: length)
            }
            guard EVP_DigestInit_ex(workspace.digest, SHA256.algorithm, nil) == 1,
                EVP_DigestUpdate(workspace.digest, input.baseAddress, input.count) == 1,
                EVP_DigestFinal_ex(workspace.digest, hash, nil) == 1
            else { preconditionFailure("OpenSSL cannot hash") }
            return Self.first(of: keys, preferred: preferred) { candidate in
                guard candidate.signatureBytes == signature.count,
                    let context = Self.context(for: candidate, scheme, in: workspace)
                else { return false }
                return EVP_PKEY_verify(context, proof.baseAddress, proof.count, hash, 32) == 1
            }
        }
    }

    private static func first(
        of keys: [Candidate], preferred: Int?, where verifies: (Candidate) -> Bool
    ) -> Int? {
        if let preferred, let named = keys.first(where: { $0.entry == preferred }), verifies(named) {
            return named.entry
        }
        for key in keys where key.entry != preferred {
            if verifies(key) { return key.entry }
        }
        ERR_clear_error()
        return nil
    }

    private static func context(
        for candidate: Candidate, _ scheme: SignatureScheme, in workspace: Workspace
    ) -> OpaquePointer? {
        if let context = workspace.contexts[candidate.slot] { return context }
        guard let context = EVP_PKEY_CTX_new(candidate.key.pointer, nil) else { return nil }
        var isReady = EVP_PKEY_verify_init(context) == 1
        switch scheme {
        case .rsaPKCS1:
            isReady = isReady && EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1
        case .rsaPSS:
            // The salt is as long as the hash (RFC 7518, section 3.5).
            isReady =
                isReady && EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1
                && EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1
                && EVP_PKEY_CTX_set_rsa_mgf1_md(context, SHA256.algorithm) == 1
        case .ecdsaP256, .ed25519: break
        }
        guard isReady, EVP_PKEY_CTX_set_signature_md(context, SHA256.algorithm) == 1 else {
            EVP_PKEY_CTX_free(context)
            return nil
        }
        workspace.contexts[candidate.slot] = context
        return context
    }

    /// Ed25519 signs the message, not its hash. OpenSSL 3.0 supports only the one-shot call with a new
    /// context each time.
    private static func verifyEd25519(
        _ signature: UnsafeBufferPointer<UInt8>, _ input: UnsafeBufferPointer<UInt8>, with key: Candidate
    ) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, nil, nil, key.key.pointer) == 1
            && EVP_DigestVerify(
                context, signature.baseAddress, signature.count, input.baseAddress, input.count) == 1
    }
}
