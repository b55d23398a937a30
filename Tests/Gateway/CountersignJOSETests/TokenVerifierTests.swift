import CountersignCore
import Testing

@testable import CountersignCrypto
@testable import CountersignJOSE

/// Tokens with a fault and, where useful, a similar valid token. The codes are in docs/reference/error-codes.md.
struct TokenVerifierTests {
    @Test func aGoodTokenIsAcceptedWithItsClaims() throws {
        let claims = #"{"sub":"user-1","exp":1800000600.5,"iat":1,"iss":"i","aud":["a","b"],"x":{"y":[1]}}"#
        let report = try Case(claims: claims).report()
        #expect(report.isAccepted && report.faults.isEmpty && report.code == nil && !report.isAnonymous)
        #expect(report.matchedKeyID == "first")
        let verified = try #require(report.claims)
        #expect(verified.subject == "user-1")
        #expect(verified.expiresAt == 1_800_000_600.5)
        #expect(verified.issuedAt == 1 && verified.notBefore == nil)
        #expect(verified.issuer == "i" && verified.audience == ["a", "b"])
        #expect(verified.json == Array(claims.utf8))
    }

    @Test(arguments: [nil, "", " ", "\t\r\n "] as [String?])
    func aMissingOrBlankTokenIsReported(token: String?) {
        let report = Case().report(of: token)
        #expect(report.code == .missingToken && report.claims == nil && report.matchedKeyID == nil)
    }

    @Test(arguments: [
        "a", "a.b", "a.b.c.d", "..", "...", "e30.e30", ".e30.e30", "é.e30.e30", "{\"a\":1}", "e30.e30.e3 0",
        "e30=.e30.e30", "e30.e30.e30\n", " e30.e30.e30", "e30.e30.e", "e30+.e30.e30", "e30.e30/.e30",
    ])
    func aTokenThatIsNotInCompactFormIsRejected(token: String) {
        #expect(Case().report(of: token).code == .decodingError)
    }

    @Test(arguments: [
        ("", "the request carries no token"), (" ", "the token is blank"),
        ("a", "the token has not exactly three parts"), ("a.b", "the token has not exactly three parts"),
        ("e30.e30.e30.", "the token has not exactly three parts"),
        ("e30.e30.e30.e30", "the token has not exactly three parts"),
        ("e30.e30.e", "a part of the token is not base64url without padding"),
    ])
    func theDetailNamesTheFaultOfTheForm(token: String, detail: String) {
        #expect(Case().report(of: token).faults.map(\.detail) == [detail])
    }

    @Test func strayBitsInTheLastCharacterAreRejected() throws {
        // The last character of each part has unused bits. The next letter sets one of them.
        let good = Case(
            header: #"{"alg":"RS256" }"#, claims: #"{"sub":"user-1","exp":1800000600 }"#, signer: TestKeys.rsa
        )
        let parts = try good.token.split(separator: ".").map(String.init)
        for index in 0..<3 {
            let last = try #require(parts[index].utf8.last)
            #expect(parts[index].utf8.count % 4 == 2)
            var changed = parts
            changed[index] = String(parts[index].dropLast()) + String(UnicodeScalar(last + 1))
            #expect(good.report(of: changed.joined(separator: ".")).code == .decodingError)
        }
        #expect(good.report(of: parts.joined(separator: ".")).isAccepted)
    }

    @Test(arguments: [
        "[]", "\"x\"", "1", "null", "", "{", "{}x", #"{"alg":"RS256","alg":"RS256"}"#,
        #"{"alg":"RS256","x":{"a":1,"a":1}}"#, #"{"alg":"RS256","\u0061lg":"RS256"}"#,
        "\u{FEFF}{\"alg\":\"RS256\"}",
        #"{"alg":"RS256","crit":["exp"],"exp":1}"#, #"{"alg":"RS256","crit":[]}"#,
        #"{"alg":"RS256","crit":null}"#, #"{"alg":"RS256","crit":"b64"}"#, #"{"alg":"RS256","b64":false}"#,
        #"{"alg":"RS256","typ":"at+jwt"}"#, #"{"alg":"RS256","typ":""}"#, #"{"alg":"RS256","typ":1}"#,
        #"{"alg":"RS256","typ":null}"#, #"{"alg":"RS256","typ":"JWT "}"#,
        #"{"alg":"RS256","typ":"application/application/jwt"}"#, #"{"alg":"RS256","x":1e400}"#,
        #"{"alg":"RS256",}"#, "{'alg':'RS256'}",
    ])
    func anInvalidHeaderIsRejected(header: String) throws {
        #expect(try Case(header: header).report().code == .decodingError)
    }

    @Test(arguments: ["JWT", "jwt", "Jwt", "application/jwt", "APPLICATION/JWT"])
    func typIsAMediaType(type: String) throws {
        #expect(try Case(header: #"{"alg":"RS256","typ":"\#(type)"}"#).codes() == [])
    }

    @Test func aHeaderWithInvalidUTF8OrDeepNestingIsRejected() throws {
        let bytes = Array("{\"alg\":\"RS256\",\"x\":\"\u{7F}\"}".utf8).map { $0 == 0x7F ? 0xFF : $0 }
        let token = try TestKeys.rsa.sign(header: bytes, payload: Array(Case().claims.utf8))
        #expect(Case().report(of: token).code == .decodingError)
        func nested(_ depth: Int) -> String {
            #"{"alg":"RS256","x":"# + String(repeating: "[", count: depth - 1) + "1"
                + String(repeating: "]", count: depth - 1) + "}"
        }
        #expect(try Case(header: nested(32)).codes() == [])
        #expect(try Case(header: nested(33)).report().code == .decodingError)
    }

    @Test func aTokenOfMoreThan8KiBIsRejected() throws {
        func token(_ padding: Int) throws -> String {
            let claims = #"{"sub":"user-1","exp":1800000600,"x":""# + String(repeating: "x", count: padding)
            return try TestKeys.rsa.sign(
                header: Array(Case().header.utf8), payload: Array((claims + "\"}").utf8))
        }
        let longest = try #require(
            try (5700..<5900).reversed().lazy.map(token).first { $0.utf8.count <= 8192 })
        #expect(longest.utf8.count > 8188)
        #expect(Case().report(of: longest).isAccepted)
        // Valid base64url of exactly 8,192 bytes, and of one more.
        let parts = "AAAA.AAAA." + String(repeating: "A", count: 8182)
        #expect(Case().report(of: parts).faults.first?.detail.contains("8 KiB") == false)
        #expect(Case().report(of: parts + "A").faults.first?.detail.contains("8 KiB") == true)
        let tooLong = try #require(try (5700..<5900).lazy.map(token).first { $0.utf8.count > 8192 })
        #expect(Case().report(of: tooLong).faults.first?.detail == "the token is longer than 8 KiB")
    }

    @Test(arguments: [
        #"{"typ":"JWT"}"#, #"{"alg":null}"#, #"{"alg":1}"#, #"{"alg":["RS256"]}"#, #"{"alg":"none"}"#,
        #"{"alg":"None"}"#, #"{"alg":"HS256"}"#, #"{"alg":"rs256"}"#, #"{"alg":"RS256 "}"#, #"{"alg":""}"#,
        #"{"alg":"PS256"}"#, #"{"alg":"ES256"}"#, #"{"alg":"EdDSA"}"#, #"{"alg":"RS384"}"#,
        #"{"alg":"RS256\u0000"}"#,
    ])
    func anAlgorithmThatIsNotAllowedIsRejected(header: String) throws {
        #expect(try Case(header: header).codes() == [24])
    }

    @Test func noneAndHMACCannotBeAllowed() throws {
        for name in ["none", "HS256"] {
            var attack = Case(header: #"{"alg":"\#(name)"}"#)
            attack.policy.algorithms = [JWSAlgorithm(rawValue: name)]
            #expect(try attack.codes() == [24])
        }
        let parts = try Case().token.split(separator: ".")
        #expect(Case().report(of: "eyJhbGciOiJub25lIn0.\(parts[1]).").code == .incorrectAlgorithm)
    }

    @Test func anAppWithoutAUsableKeyIsReported() throws {
        var broken = Case()
        broken.keys = [KeyRing.Entry(id: "cut", text: "-----BEGIN PUBLIC KEY-----\nMIIB")]
        #expect(try broken.codes() == [25])
        broken.keys.append(KeyRing.Entry(id: "first", key: TestKeys.rsa.publicKey))
        #expect(try broken.codes() == [])
    }

    @Test func aTokenThatNoKeyVerifiesIsRejected() throws {
        var other = Case()
        other.keys = []
        #expect(try other.codes() == [27])
        other.keys = [KeyRing.Entry(id: "other", key: TestKeys.otherRSA.publicKey)]
        #expect(try other.codes() == [27])
        other.keys = [KeyRing.Entry(id: "ec", key: TestKeys.ec.publicKey)]
        let report = try other.report()
        #expect(report.faults.map(\.code) == [.noMatchingPublicKeys])
        #expect(report.faults.map(\.detail) == ["the app has no usable key for this algorithm"])
        // A key that is bound to PS256 does not verify RS256, although it is the signer's public key.
        other.keys = [
            KeyRing.Entry(id: "pss", text: TestKeys.rsa.publicKey.pem, algorithm: .ps256)
        ]
        other.policy.algorithms = [.rs256, .ps256]
        #expect(try other.codes() == [27])
    }

    @Test func aSignatureWithAChangedBitIsRejected() throws {
        let token = try Case().token
        let dot = try #require(token.lastIndex(of: "."))
        let signature = try #require(Base64URL.decode(String(token[token.index(after: dot)...])))
        for bit in stride(from: 0, to: signature.count * 8, by: 97) {
            var changed = signature
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            let report = Case().report(of: token[...dot] + Base64URL.encode(changed))
            #expect(report.code == .noMatchingPublicKeys)
        }
        for changed in [[], Array(signature.dropLast()), signature + [0], [0] + signature] {
            let report = Case().report(of: token[...dot] + Base64URL.encode(changed))
            #expect(report.code == .noMatchingPublicKeys)
        }
    }

    @Test func aClaimIsNotCheckedBeforeTheSignatureIsGood() throws {
        var bad = Case(claims: #"{"sub":1,"exp":"x"}"#, signer: TestKeys.otherRSA)
        #expect(try bad.codes() == [27])
        bad.claims = "not JSON"
        #expect(try bad.codes() == [27])
    }

    @Test(arguments: [
        "[]", "\"x\"", "", "{", #"{"sub":"user-1","sub":"user-1","exp":1800000600}"#,
        #"{"sub":"user-1","exp":1800000600,"exp":1}"#, #"{"sub":"user-1","exp":"1800000600"}"#,
        #"{"sub":"user-1","exp":true}"#, #"{"sub":"user-1","exp":1e400}"#,
        #"{"sub":"user-1","exp":[1800000600]}"#,
        #"{"sub":"user-1","exp":1800000600,"nbf":"1"}"#, #"{"sub":"user-1","exp":1800000600,"nbf":null}"#,
        #"{"sub":"user-1","exp":1800000600,"iat":{}}"#, #"{"sub":"user-1","exp":1800000600,"iat":false}"#,
        #"{"sub":1,"exp":1800000600}"#, #"{"sub":["user-1"],"exp":1800000600}"#,
        #"{"sub":"user-1","exp":1800000600,"iss":1}"#, #"{"sub":"user-1","exp":1800000600,"aud":1}"#,
        #"{"sub":"user-1","exp":1800000600,"aud":["a",1]}"#, #"{"sub":"user-1","exp":1800000600,"aud":null}"#,
        #"{"sub":"user-1","exp":NaN}"#, #"{"sub":"user-1\udc00","exp":1800000600}"#,
    ])
    func malformedClaimsAreRejected(claims: String) throws {
        #expect(try Case(claims: claims).codes() == [23])
    }

    @Test func everyMalformedClaimIsNamedAndTheOthersAreChecked() throws {
        let report = try Case(claims: #"{"sub":"user-2","iat":"x","nbf":[],"exp":1}"#).report()
        #expect(report.faults.map(\.code.rawValue) == [23, 23, 22, 21])
        #expect(report.matchedKeyID == "first" && report.claims == nil)
    }

    @Test(arguments: [
        #"{"sub":"user-1"}"#, #"{"sub":"user-1","exp":null}"#, #"{"sub":"user-1","a":{"exp":9e9}}"#,
    ])
    func aTokenWithoutExpIsRejected(claims: String) throws {
        #expect(try Case(claims: claims).codes() == [10])
    }

    @Test(arguments: [
        (0.0, 600.0, true), (0, 599.999, false), (30, 629.999, false), (30, 630, true), (300, 899.9, false),
        (300, 900, true), (4000, 900, true), (-5, 600, true), (Double.nan, 600, true),
    ])
    func aTokenExpiresAfterExpAndTheLeeway(leeway: Double, after: Double, expected: Bool) throws {
        var late = Case()
        late.policy.leeway = leeway
        late.now += after
        #expect(try late.codes() == (expected ? [22] : []))
    }

    @Test func aNaNClockAcceptsNoToken() throws {
        var strange = Case(claims: #"{"sub":"user-1","exp":1800000600,"nbf":1,"iat":1}"#)
        strange.now = .nan
        #expect(try strange.codes() == [22, 30, 31])
    }

    @Test(arguments: [("nbf", 30, 1800000030.0), ("iat", 31, 1800000030.0)])
    func nbfAndIatMayNotBeInTheFuture(claim: String, code: Int, last: Double) throws {
        #expect(try Case(claims: #"{"sub":"user-1","exp":1800000600,"\#(claim)":\#(last)}"#).codes() == [])
        let over = #"{"sub":"user-1","exp":1800000600,"\#(claim)":\#(last + 0.001)}"#
        #expect(try Case(claims: over).codes() == [code])
    }

    @Test func thePolicyLimitsTheLifetime() throws {
        var limited = Case(claims: #"{"sub":"user-1","exp":1800000600,"iat":1799999999}"#)
        limited.policy.maximumLifetime = 600
        #expect(try limited.codes() == [32])
        limited.policy.maximumLifetime = 601
        #expect(try limited.codes() == [])
        // Without `iat` only the remaining lifetime is checked.
        limited.claims = #"{"sub":"user-1","exp":1800000632}"#
        limited.policy.maximumLifetime = 601
        #expect(try limited.codes() == [32])
        limited.policy.maximumLifetime = 602
        #expect(try limited.codes() == [])
        limited.policy.maximumLifetime = nil
        limited.claims = #"{"sub":"user-1","exp":1e300}"#
        #expect(try limited.report().warnings == [.longLifetime])
    }

    @Test(
        arguments: [
            (#""braze""#, false, []), (#"["x","braze"]"#, true, []), (#""Braze""#, false, [33]),
            (#"[]"#, false, [33]),
            (#""""#, false, [33]), (nil, false, []), (nil, true, [33]),
        ] as [(String?, Bool, [Int])])
    func theAudienceMustBeOneOfThePolicy(aud: String?, required: Bool, codes: [Int]) throws {
        var bound = Case(claims: #"{"sub":"user-1","exp":1800000600\#(aud.map { ",\"aud\":\($0)" } ?? "")}"#)
        bound.policy.requiresAudience = required
        #expect(try bound.codes() == [])
        bound.policy.audiences = ["braze"]
        #expect(try bound.codes() == codes)
    }

    @Test(
        arguments: [("\"key\"", false, []), ("\"Key\"", false, [34]), (nil, false, []), (nil, true, [34])]
            as [(
                String?, Bool, [Int]
            )])
    func theIssuerMustBeOneOfThePolicy(iss: String?, required: Bool, codes: [Int]) throws {
        var bound = Case(claims: #"{"sub":"user-1","exp":1800000600\#(iss.map { ",\"iss\":\($0)" } ?? "")}"#)
        bound.policy.requiresIssuer = required
        #expect(try bound.codes() == [])
        bound.policy.issuers = ["key"]
        #expect(try bound.codes() == codes)
    }

    @Test(arguments: [
        (#"{"exp":1800000600}"#, "user-1"), (#"{"sub":null,"exp":1800000600}"#, "user-1"),
        (#"{"sub":"","exp":1800000600}"#, "user-1"), (#"{"sub":"User-1","exp":1800000600}"#, "user-1"),
        (#"{"sub":"user-1 ","exp":1800000600}"#, "user-1"),
        (#"{"sub":"user-1\u0000","exp":1800000600}"#, "user-1"),
        (#"{"sub":"re\u0301mi","exp":1800000600}"#, "r\u{E9}mi"),
        (#"{"sub":"\u212b","exp":1800000600}"#, "\u{C5}"),
    ])
    func theSubjectMustBeTheUser(claims: String, user: String) throws {
        #expect(try Case(claims: claims, user: user).codes() == [21])
    }

    @Test func everyUserOfTheRequestMustBeTheSubject() throws {
        #expect(try Case(payloadUsers: ["user-1", "", "user-1"]).codes() == [])
        #expect(try Case(payloadUsers: ["user-1", "user-2"]).codes() == [28])
        #expect(try Case(user: "user-2", payloadUsers: ["user-1"]).codes() == [21, 28])
        // If only the payload names users, all must be one user: the subject.
        #expect(try Case(user: nil, payloadUsers: ["user-1"]).codes() == [])
        #expect(try Case(user: nil, payloadUsers: ["user-2", "user-1"]).codes() == [28])
        #expect(try Case(user: nil, payloadUsers: ["user-2"]).codes() == [21])
        #expect(try Case(user: "", payloadUsers: ["user-2", "user-3"]).codes() == [21, 28])
        #expect(try Case(payloadUsers: ["user-1", "user-2"]).report().claims == nil)
        let nobody = #"{"sub":"","exp":1800000600}"#
        #expect(try Case(claims: nobody, user: nil, payloadUsers: ["", "user-1"]).codes() == [21])
    }

    @Test func aRequestWithoutAUserIsAnonymousAndItsTokenUnchecked() throws {
        for request in [Case(user: nil), Case(user: ""), Case(user: nil, payloadUsers: ["", ""])] {
            let report = request.report(of: "nonsense")
            #expect(report.isAnonymous && report.isAccepted && report.claims == nil)
        }
    }

    @Test func theReportListsAllFaultsInTheOrderOfTheChecks() throws {
        var all = Case(
            claims: #"{"sub":"user-2","exp":1,"nbf":1900000000,"iat":1900000001,"aud":"x","iss":"y"}"#)
        all.policy.audiences = ["a"]
        all.policy.issuers = ["b"]
        all.payloadUsers = ["user-3"]
        #expect(try all.codes() == [22, 30, 31, 33, 34, 21, 28])
        all.header = #"{"alg":"none","crit":[],"typ":1,"b64":false}"#
        all.keys = []
        #expect(try all.codes() == [20, 20, 20, 24, 27, 28])
    }

    @Test func theClockSkewIsReportedIfItExplainsTheFault() throws {
        var late = Case()
        late.now += 4000
        #expect(late.report(of: try late.token, deviceTime: Case.now).clockSkewSeconds == -4000)
        #expect(late.report(of: try late.token, deviceTime: late.now).clockSkewSeconds == nil)
        #expect(late.report(of: try late.token, deviceTime: .nan).clockSkewSeconds == nil)
        #expect(Case().report(of: try Case().token, deviceTime: 5).clockSkewSeconds == nil)
        // This token has no fault that a wrong device clock could explain.
        #expect(Case().report(of: try Case().token, deviceTime: Case.now + 300).clockSkewSeconds == nil)
    }

    @Test func aMissingTypIsNotedOrRejected() throws {
        var untyped = Case(header: #"{"alg":"RS256"}"#)
        #expect(try untyped.report().warnings == [.typeMissing])
        untyped.policy.requiresType = true
        #expect(try untyped.codes() == [20])
    }

    @Test func jwkJkuAndX5cHeadersChooseNoKey() throws {
        let jwk = TestKeys.otherRSA.publicKey.jwk
        let header =
            #"{"alg":"RS256","jwk":\#(jwk),"jku":"https://evil.example/","x5u":"x","x5c":["AA=="],"kid":7}"#
        #expect(try Case(header: header, signer: TestKeys.otherRSA).codes() == [27])
        #expect(try Case(header: header).codes() == [])
    }

    @Test func aWrongKidDoesNotPreventVerification() throws {
        var ring = Case()
        ring.keys = [
            KeyRing.Entry(id: "a", key: TestKeys.otherRSA.publicKey),
            KeyRing.Entry(id: "b", key: TestKeys.rsa.publicKey),
        ]
        for kid in ["a", "b", "c", "../../key", TestKeys.rsa.publicKey.thumbprint] {
            ring.header = #"{"alg":"RS256","kid":"\#(kid)"}"#
            #expect(try ring.report().matchedKeyID == "b")
        }
    }

    @Test func parsingRejectsTokensOver8KiB() throws {
        func token(_ count: Int) -> String { "e30.e30." + String(repeating: "A", count: count - 8) }
        #expect(try CompactJWS(parsing: token(8192)).signature.count == 6138)
        let error = #expect(throws: JOSEError.self) { try CompactJWS(parsing: token(8194)) }
        #expect(error?.code == .malformedToken && error?.reason == "the token is longer than 8 KiB")
    }

    @Test func nothingPrintsASecret() throws {
        let token = try Case().token
        let report = Case().report(of: token)
        let texts = [
            "\(report.claims.map { "\($0)" } ?? "")", "\(TestKeys.rsa)", "\(try CompactJWS(parsing: token))",
            "\(Case(user: "someone").report(of: token).faults)",
        ]
        for text in texts {
            #expect(!text.contains("user-1") && !text.contains("someone"))
            #expect(!text.contains(String(token.suffix(40))) && !text.contains("PRIVATE"))
        }
    }
}
