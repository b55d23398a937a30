import CountersignCore
import CountersignCrypto
import CountersignJOSE
import Testing

struct CustomerTokenVerifierTests {
    private let secret = Array("a secret of at least thirty-two bytes".utf8)
    private let signingKey: SigningKey
    private let ring: TokenVerifier
    private let verifier: CustomerTokenVerifier
    private let now = 1_800_000_000.0

    init() throws {
        signingKey = try SigningKey.generate(.es256)
        var policy = ClaimsPolicy()
        policy.algorithms = [.es256]
        policy.maximumLifetime = 3_600
        ring = TokenVerifier(
            keys: KeyRing(entries: [KeyRing.Entry(id: "ring", key: signingKey.publicKey)]), policy: policy)
        verifier = CustomerTokenVerifier(keys: [CustomerTokenKey(id: "key-1", secret: secret)], ring: ring)
    }

    private func token(
        _ payload: String, header: String = #"{"alg":"HS256","typ":"JWT","kid":"key-1"}"#,
        secret: [UInt8]? = nil
    ) -> String {
        let input =
            Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(payload.utf8))
        let code = HMACSHA256.authenticate(Array(input.utf8), key: secret ?? self.secret)
        return input + "." + Base64URL.encode(code)
    }

    private func code(_ token: String) -> Int? { verifier.verify(token, at: now).report.code?.rawValue }

    @Test func aTokenSignedWithTheSharedSecretGivesItsIDs() {
        let result = verifier.verify(
            token(#"{"sub":{"registered":"jane@example.com","cookie":"A"},"exp":1800000600}"#), at: now)
        #expect(result.report.isAccepted)
        #expect(result.report.matchedKeyID == "key-1")
        #expect(result.identifiers.map(\.name) == ["registered", "cookie"])
        #expect(result.identifiers.map(\.value) == ["jane@example.com", "A"])
    }

    @Test func aTokenSignedByTheKeyRingGivesItsIDs() throws {
        let token = try signingKey.sign(claims: [
            "sub": ["registered": "jane"], "exp": .integer(Int64(now) + 600),
        ])
        let result = verifier.verify(token, at: now)
        #expect(result.report.isAccepted)
        #expect(result.identifiers.map(\.value) == ["jane"])
        // The same token is not valid for events of the user.
        #expect(!ring.verify(token, userID: "jane", at: now).isAccepted)
    }

    @Test func theUserClaimOfThePolicyDoesNotChangeTheIDs() throws {
        var policy = ring.policy
        policy.userClaim = "oid"
        let verifier = CustomerTokenVerifier(
            keys: [CustomerTokenKey(id: "key-1", secret: secret)],
            ring: TokenVerifier(keys: ring.keys, policy: policy))
        let own = token(#"{"sub":{"registered":"jane"},"exp":1800000600}"#)
        let signed = try signingKey.sign(claims: [
            "sub": ["registered": "jane"], "exp": .integer(Int64(now) + 600),
        ])
        for token in [own, signed] {
            let result = verifier.verify(token, at: now)
            #expect(result.report.isAccepted, "\(result.report.faults)")
            #expect(result.identifiers.map(\.value) == ["jane"])
        }
    }

    @Test func theKeyRingRejectsHS256() {
        let signed = token(#"{"sub":"jane","exp":1800000600}"#, header: #"{"alg":"HS256","kid":"ring"}"#)
        #expect(ring.verify(signed, userID: "jane", at: now).code == .incorrectAlgorithm)
        // The text of the public key is not an HMAC secret either.
        let pem = Array(signingKey.publicKey.pem.utf8)
        #expect(
            code(
                token(
                    #"{"sub":{"registered":"jane"},"exp":1800000600}"#,
                    header: #"{"alg":"HS256","kid":"ring"}"#, secret: pem)) == 27)
    }

    @Test(arguments: [
        // The signature.
        (#"{"sub":{"registered":"j"},"exp":1800000600}"#, #"{"alg":"HS256","kid":"key-2"}"#, 27),
        (#"{"sub":{"registered":"j"},"exp":1800000600}"#, #"{"alg":"HS256"}"#, 27),
        (#"{"sub":{"registered":"j"},"exp":1800000600}"#, #"{"alg":"HS512","kid":"key-1"}"#, 24),
        (#"{"sub":{"registered":"j"},"exp":1800000600}"#, #"{"alg":"none","kid":"key-1"}"#, 24),
        (#"{"sub":{"registered":"j"},"exp":1800000600}"#, #"{"alg":"HS256","kid":"key-1","crit":["x"]}"#, 20),
        // The claims.
        (#"{"sub":{"registered":"j"}}"#, nil, 10),
        (#"{"sub":{"registered":"j"},"exp":1799999969}"#, nil, 22),
        (#"{"sub":{"registered":"j"},"exp":1800000600,"nbf":1800000060}"#, nil, 30),
        (#"{"sub":{"registered":"j"},"exp":1800009999}"#, nil, 32),
        (#"{"sub":{"registered":"j"},"exp":"soon"}"#, nil, 23),
        (#"{"sub":"j","exp":1800000600}"#, nil, 23),
        (#"{"sub":{},"exp":1800000600}"#, nil, 23),
        (#"{"sub":{"registered":7},"exp":1800000600}"#, nil, 23),
        (#"{"sub":{"registered":""},"exp":1800000600}"#, nil, 23),
        (#"{"sub":{"registered":"j"},"sub":{"registered":"k"},"exp":1800000600}"#, nil, 23),
        (#"[]"#, nil, 23),
    ])
    func everyFaultHasItsCode(payload: String, header: String?, expected: Int) {
        let signed = header.map { token(payload, header: $0) } ?? token(payload)
        let result = verifier.verify(signed, at: now)
        #expect(result.report.code?.rawValue == expected)
        #expect(result.identifiers.isEmpty)
    }

    @Test func onlyATokenWithoutOtherFaultsIsComparedWithTheRequestsIDs() {
        func codes(_ expiry: Int, _ customerIDs: BytewiseDictionary<String>) -> [Int] {
            let signed = token(#"{"sub":{"registered":"jane"},"exp":\#(expiry)}"#)
            return verifier.verify(signed, naming: customerIDs, at: now).faults.map(\.code.rawValue)
        }
        #expect(codes(1_800_000_600, ["registered": "jane", "cookie": "any"]) == [])
        #expect(codes(1_800_000_600, ["registered": "john"]) == [21])
        #expect(codes(1_799_999_000, ["registered": "john"]) == [22])
    }

    @Test func aTokenOfMoreThan8KiBIsRejected() {
        func claims(_ count: Int) -> String {
            #"{"sub":{"registered":"jane"},"exp":1800000600,"x":""# + String(repeating: "x", count: count)
                + #""}"#
        }
        #expect(code(token(claims(5_900))) == nil)
        #expect(code(token(claims(6_100))) == 20)
    }

    @Test func aChangedTokenIsRejected() {
        let good = token(#"{"sub":{"registered":"jane"},"exp":1800000600}"#)
        let other = token(#"{"sub":{"registered":"john"},"exp":1800000600}"#)
        let parts = good.split(separator: ".")
        let forged = other.split(separator: ".")
        #expect(code("\(parts[0]).\(forged[1]).\(parts[2])") == 27)
        #expect(code("\(parts[0]).\(parts[1]).") == 27)
        #expect(code("\(parts[0]).\(parts[1]).\(parts[2].dropLast(2))AA") == 27)
        #expect(code("\(parts[0]).\(parts[1])") == 20)
        #expect(code("") == 26)
        #expect(
            code(token(#"{"sub":{"registered":"jane"},"exp":1800000600}"#, secret: Array("x".utf8))) == 27)
        // The payload is checked only if the signature is valid.
        let unsigned = verifier.verify(token(#"{"sub":"jane"}"#, secret: Array("x".utf8)), at: now)
        #expect(unsigned.report.faults.map(\.code) == [.noMatchingPublicKeys])
    }
}
