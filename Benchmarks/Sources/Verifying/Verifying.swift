internal import CEVP
internal import CountersignJOSE
internal import Foundation

/// Measures the cost of a verification, and OpenSSL's share of the cost, in one run. On a shared machine
/// figures of different runs differ by 20 %.
@main struct Verifying {
    static let now = 1_800_000_000.0

    static func main() throws {
        let keys = try (0..<3).map { _ in try SigningKey.generate(.rs256) }
        let token = try Self.token(keys[2])
        let own = try OpenSSLVerification(key: keys[2], token: token)
        let one = verifier([keys[2]])
        let three = verifier(keys)
        let cached = verifier([keys[2]], cache: VerifiedTokenCache())
        let named = try Self.token(keys[2], keyID: "2")

        // Checks the verifications' results before the measurement.
        check(own.verifyOnce() && own.verifyWithNewContext(), "OpenSSL")
        for (verifier, token) in [
            (one, token), (three, token), (three, named), (cached, token), (cached, token),
        ] {
            check(verifier.verify(token, userID: "user-1", at: now).isAccepted, "the verifier")
        }
        check(cached.verify(token, userID: "user-2", at: now).code == .subjectMismatch, "the cached verifier")

        let baseline = measure("openssl-sha256-and-EVP_PKEY_verify") { own.verifyOnce() }
        measure("openssl-EVP_DigestVerify-new-context", against: baseline) { own.verifyWithNewContext() }
        measure("rs256-token-N=1", against: baseline) {
            one.verify(token, userID: "user-1", at: now).isAccepted
        }
        measure("rs256-token-third-of-N=3", against: baseline) {
            three.verify(token, userID: "user-1", at: now).isAccepted
        }
        measure("rs256-token-kid-N=3", against: baseline) {
            three.verify(named, userID: "user-1", at: now).isAccepted
        }
        measure("cache-hit", against: baseline) {
            cached.verify(token, userID: "user-1", at: now).isAccepted
        }
        for algorithm in [JWSAlgorithm.ps256, .es256, .edDSA] {
            let key = try SigningKey.generate(algorithm)
            let token = try Self.token(key)
            let verifier = verifier([key])
            check(verifier.verify(token, userID: "user-1", at: now).isAccepted, algorithm.rawValue)
            measure("\(algorithm.rawValue.lowercased())-token-N=1", against: baseline) {
                verifier.verify(token, userID: "user-1", at: now).isAccepted
            }
        }
    }

    private static func token(_ key: SigningKey, keyID: String? = nil) throws -> String {
        try key.sign(
            claims: [
                "sub": "user-1", "exp": 1_800_003_600, "iat": 1_799_999_990, "iss": "a", "aud": "braze",
            ],
            keyID: keyID)
    }

    private static func verifier(_ keys: [SigningKey], cache: VerifiedTokenCache? = nil) -> TokenVerifier {
        let entries = keys.enumerated().map { KeyRing.Entry(id: "\($0.offset)", key: $0.element.publicKey) }
        return TokenVerifier(
            keys: KeyRing(entries: entries), policy: ClaimsPolicy(algorithms: JWSAlgorithm.all), cache: cache)
    }

    private static func check(_ isTrue: Bool, _ what: String) {
        guard isTrue else { fatalError("\(what) failed before the measurement") }
    }

    /// The median CPU time of 15 rounds of at least 30 ms, in microseconds an operation.
    @discardableResult
    private static func measure(
        _ name: String, against baseline: Double? = nil, _ operation: () -> Bool
    ) -> Double {
        // With an argument, such as `Verifying cache-hit`, measures only operations whose names contain it.
        if let only = CommandLine.arguments.dropFirst().first, !name.contains(only) { return .nan }
        var count = 1
        while seconds(count, operation) < 0.03 { count *= 2 }
        let rounds = (0..<15).map { _ in seconds(count, operation) / Double(count) * 1e6 }.sorted()
        let median = rounds[7]
        let ratio = baseline.map { String(format: "%8.3f", median / $0) } ?? "   1.000"
        print(
            name.padding(toLength: 40, withPad: " ", startingAt: 0), String(format: "%9.3f us", median), ratio
        )
        return median
    }

    private static func seconds(_ count: Int, _ operation: () -> Bool) -> Double {
        let start = cpuSeconds()
        var good = 0
        for _ in 0..<count where operation() { good += 1 }
        guard good == count else { fatalError("a verification failed") }
        return cpuSeconds() - start
    }

    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}

/// Verifies the same signature with OpenSSL only, without decoding or parsing the token.
final class OpenSSLVerification {
    private let key: OpaquePointer
    private let context: OpaquePointer
    private let hashing: OpaquePointer
    private let sha256: OpaquePointer
    private let input: [UInt8]
    private let signature: [UInt8]

    init(key signer: SigningKey, token: String) throws {
        let parts = token.split(separator: ".")
        var base64 = parts[2].replacingOccurrences(of: "-", with: "+").replacingOccurrences(
            of: "_", with: "/")
        base64 += String(repeating: "=", count: (4 - base64.count % 4) % 4)
        let pem = Array(signer.publicKey.pem.utf8)
        let bio = BIO_new_mem_buf(pem, Int32(pem.count))
        defer { BIO_free(bio) }
        guard let data = Data(base64Encoded: base64), let key = PEM_read_bio_PUBKEY(bio, nil, nil, nil),
            let context = EVP_PKEY_CTX_new(key, nil), let hashing = EVP_MD_CTX_new(),
            let sha256 = EVP_MD_fetch(nil, "SHA256", nil)
        else { fatalError("OpenSSL") }
        EVP_PKEY_verify_init(context)
        EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING)
        EVP_PKEY_CTX_set_signature_md(context, sha256)
        (self.key, self.context, self.hashing, self.sha256) = (key, context, hashing, sha256)
        input = Array("\(parts[0]).\(parts[1])".utf8)
        signature = Array(data)
    }

    func verifyOnce() -> Bool {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { hash in
            EVP_DigestInit_ex(hashing, sha256, nil)
            EVP_DigestUpdate(hashing, input, input.count)
            EVP_DigestFinal_ex(hashing, hash.baseAddress, nil)
            return EVP_PKEY_verify(context, signature, signature.count, hash.baseAddress, 32) == 1
        }
    }

    func verifyWithNewContext() -> Bool {
        let context = EVP_MD_CTX_new()
        defer { EVP_MD_CTX_free(context) }
        return EVP_DigestVerifyInit(context, nil, sha256, nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, input, input.count) == 1
    }
}
