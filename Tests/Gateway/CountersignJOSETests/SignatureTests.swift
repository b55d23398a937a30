import CountersignCore
import Foundation
import Testing

@testable import CountersignCrypto
@testable import CountersignJOSE

struct SignatureTests {
    private func verifier(_ keys: [SigningKey]) -> TokenVerifier {
        TokenVerifier(keys: KeyRing(keys), policy: ClaimsPolicy(algorithms: JWSAlgorithm.all))
    }

    private func matched(_ token: String, _ keys: [SigningKey]) -> String? {
        verifier(keys).inspect(token, at: Case.now).matchedKeyID
    }

    @Test(arguments: JWSAlgorithm.all)
    func ownSignaturesVerify(algorithm: JWSAlgorithm) throws {
        let key = try SigningKey(pem: TestKeys.of(algorithm).privatePEM, algorithm: algorithm)
        for length in [0, 1, 15, 32, 200] {
            let token = try key.sign(
                claims: ["sub": .string(String(repeating: "ü", count: length)), "exp": 1_800_000_600],
                keyID: "k", type: nil)
            #expect(matched(token, [TestKeys.otherRSA, TestKeys.otherEC, key]) == "2")
            #expect(matched(token, [TestKeys.otherRSA, TestKeys.otherEC]) == nil)
            let parts = token.split(separator: ".")
            #expect(matched("\(parts[0]).\(parts[1])A.\(parts[2])", [key]) == nil)
        }
    }

    @Test func aSignatureIsInvalidForAnotherAlgorithm() throws {
        let asPSS = try SigningKey(pem: TestKeys.rsa.privatePEM, algorithm: .ps256)
        let payload = Array(Case().claims.utf8)
        let pss = try asPSS.sign(header: Array(#"{"alg":"RS256"}"#.utf8), payload: payload)
        #expect(matched(pss, [TestKeys.rsa]) == nil)
        let pkcs1 = try TestKeys.rsa.sign(header: Array(#"{"alg":"PS256"}"#.utf8), payload: payload)
        #expect(matched(pkcs1, [asPSS]) == nil)
    }

    /// RFC 7518, section 3.5.
    @Test func ps256AcceptsOnlyA32ByteSalt() throws {
        let ring = KeyRing(entries: [KeyRing.Entry(id: "k", text: Fixtures.spki)])
        let verifier = TokenVerifier(keys: ring, policy: ClaimsPolicy(algorithms: [.ps256]))
        #expect(verifier.inspect(Fixtures.pssSalt32, at: Case.now).isAccepted)
        #expect(verifier.inspect(Fixtures.pssSalt20, at: Case.now).code == .noMatchingPublicKeys)
        #expect(verifier.inspect(Fixtures.pssSalt0, at: Case.now).code == .noMatchingPublicKeys)
    }

    /// RFC 7518, section 3.4, and CVE-2022-21449 (r = s = 0 verified anything).
    @Test func es256AcceptsOnlyARawSignatureInRange() throws {
        let token = try TestKeys.ec.sign(claims: ["sub": "user-1", "exp": 1_800_000_600])
        let dot = try #require(token.lastIndex(of: "."))
        let good = try #require(Base64URL.decode(String(token[token.index(after: dot)...])))
        #expect(good.count == 64)
        let order: [UInt8] = [
            0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xBC, 0xE6,
            0xFA,
            0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63, 0x25, 0x51,
        ]
        let zero = [UInt8](repeating: 0, count: 32)
        var der = [UInt8](repeating: 0, count: 72)
        let length = good.withUnsafeBufferPointer { raw in
            der.withUnsafeMutableBufferPointer { buffer in
                buffer.baseAddress.flatMap { ECDSASignature.writeDER(raw: raw, to: $0) } ?? 0
            }
        }
        #expect(length >= 68)
        let bad: [[UInt8]] = [
            zero + zero, zero + Array(good[32...]), Array(good[..<32]) + zero, order + order,
            order + Array(good[32...]), Array(der[..<length]), Array(good[32...] + good[..<32]), good + [0],
            [],
        ]
        for signature in bad {
            #expect(matched(token[...dot] + Base64URL.encode(signature), [TestKeys.ec]) == nil)
        }
        #expect(matched(token, [TestKeys.ec]) == "0")
    }

    @Test func anEd25519SignatureHas64Bytes() throws {
        let token = try TestKeys.ed.sign(claims: ["sub": "user-1", "exp": 1_800_000_600])
        let dot = try #require(token.lastIndex(of: "."))
        let good = try #require(Base64URL.decode(String(token[token.index(after: dot)...])))
        for signature in [[], Array(good.dropLast()), good + [0], [0] + good, good + good] {
            #expect(matched(token[...dot] + Base64URL.encode(signature), [TestKeys.ed]) == nil)
        }
        #expect(matched(token, [TestKeys.ed]) == "0")
    }

    /// If an `EVP_MD_CTX` is initialized again with another key, OpenSSL 3.0 still verifies with the first
    /// one.
    @Test func verifyingWithSeveralKeysReusesNoDigestContext() throws {
        for (mine, other) in [(TestKeys.rsa, TestKeys.otherRSA), (TestKeys.ec, TestKeys.otherEC)] {
            let forMine = try mine.sign(claims: ["exp": 1])
            let forOther = try other.sign(claims: ["exp": 1])
            let both = verifier([mine, other])
            let (onlyMine, onlyOther) = (verifier([mine]), verifier([other]))
            for _ in 0..<3 {
                #expect(both.inspect(forMine, at: 0).matchedKeyID == "0")
                #expect(both.inspect(forOther, at: 0).matchedKeyID == "1")
                #expect(onlyMine.inspect(forMine, at: 0).matchedKeyID == "0")
                #expect(onlyMine.inspect(forOther, at: 0).matchedKeyID == nil)
                #expect(onlyOther.inspect(forMine, at: 0).matchedKeyID == nil)
                #expect(onlyOther.inspect(forOther, at: 0).matchedKeyID == "0")
            }
        }
    }

    /// Up to sixteen threads verify the same tokens at once.
    @Test func concurrentVerificationsGiveTheSameResults() throws {
        let keys = [TestKeys.rsa, TestKeys.ec, TestKeys.ed]
        let verifier = verifier(keys)
        let tokens = try (keys + [TestKeys.otherRSA]).map {
            try $0.sign(claims: ["sub": "user-1", "exp": 1_800_000_600])
        }
        let wrong = Lock(0)
        DispatchQueue.concurrentPerform(iterations: 16) { thread in
            for round in 0..<40 {
                let index = (thread + round) % tokens.count
                let report = verifier.verify(tokens[index], userID: "user-1", at: Case.now)
                let expected = index < 3 ? "\(index)" : nil
                if report.matchedKeyID != expected || report.isAccepted != (index < 3) {
                    wrong.withLock { $0 += 1 }
                }
            }
        }
        #expect(wrong.withLock { $0 } == 0)
    }
}
