import Foundation
import Testing

@testable import CountersignCrypto
@testable import CountersignJOSE

struct PublicKeyTests {
    private func code(_ text: String) -> JOSEError.Code? {
        do throws(JOSEError) {
            _ = try PublicKey(text: text)
            return nil
        } catch {
            return error.code
        }
    }

    /// RFC 7638, section 3.1; RFC 8037, appendix A.3.
    @Test func thumbprintsAreThoseOfTheStandards() throws {
        let rsa = try PublicKey(
            jwk: """
                {"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc\
                _BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMi\
                cAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHa\
                Q-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}
                """)
        #expect(rsa.thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        #expect(rsa.kid == "2011-04-29" && rsa.algorithm == .rs256 && rsa.bits == 2048)
        let ed = try PublicKey(
            jwk: #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#)
        #expect(ed.thumbprint == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
        #expect(ed.algorithm == .edDSA && ed.kid == nil)
    }

    @Test(arguments: [JWSAlgorithm.rs256, .ps256, .es256, .edDSA])
    func everyFormOfAKeyIsTheSameKey(algorithm: JWSAlgorithm) throws {
        let key = TestKeys.of(algorithm).publicKey
        let fromPEM = try PublicKey(pem: key.pem)
        let fromJWK = try PublicKey(text: " \n" + key.jwk)
        let fromOneLine = try PublicKey(pem: "  " + key.pem.replacingOccurrences(of: "\n", with: "\r\n "))
        for form in [fromPEM, fromJWK, fromOneLine] {
            #expect(form.thumbprint == key.thumbprint && form.pem == key.pem)
        }
        #expect(fromJWK.kid == key.thumbprint && fromJWK.algorithm == algorithm)
    }

    @Test func pkcs1AndCertificatesAreRead() throws {
        #expect(try PublicKey(pem: Fixtures.pkcs1).thumbprint == PublicKey(pem: Fixtures.spki).thumbprint)
        #expect(
            try PublicKey(pem: Fixtures.certificate).thumbprint == PublicKey(pem: Fixtures.spki).thumbprint)
    }

    /// RFC 5480, section 2.2: a point may be given by its x and the parity of its y.
    @Test func aCompressedPointIsTheSameKey() throws {
        let key = TestKeys.ec.publicKey
        let point = try #require(key.point)
        let prefix: [UInt8] = [
            0x30, 0x39, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A,
            0x86,
            0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x22, 0x00,
        ]
        let compressed = [2 + point[64] % 2] + point[1..<33]
        let read = try PublicKey(pem: PEMBlock.write("PUBLIC KEY", prefix + compressed), algorithm: .es256)
        #expect(read.thumbprint == key.thumbprint && read.jwk == key.jwk)
    }

    @Test func aCertificateIsReadCompletelyWithItsExpiry() throws {
        let pasted = try PastedKeys(text: Fixtures.certificate)
        #expect(pasted.items.map(\.expiresAt) == [1_795_317_150])
        #expect(pasted.items.map(\.source) == [.certificate])
        let bytes = try PEMBlock.parse(Fixtures.certificate)[0].bytes
        #expect(code(PEMBlock.write("CERTIFICATE", bytes + [0])) == .unreadableKey)
        #expect(code(PEMBlock.write("CERTIFICATE", Array(bytes.dropLast()))) == .unreadableKey)
    }

    @Test func aPrivateKeyIsRejectedAsSecretKey() throws {
        for algorithm in [JWSAlgorithm.rs256, .es256, .edDSA] {
            let pem = TestKeys.of(algorithm).privatePEM
            #expect(code(pem) == .secretKey)
            #expect(code(pem + TestKeys.of(algorithm).publicKey.pem) == .secretKey)
            #expect(code(TestKeys.of(algorithm).publicKey.pem + pem) == .secretKey)
            #expect(code(String(pem.prefix(60))) == .secretKey)
        }
        for label in ["RSA PRIVATE KEY", "EC PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
            #expect(code("-----BEGIN \(label)-----\nAAAA\n-----END \(label)-----") == .secretKey)
        }
        for member in ["d", "p", "q", "dp", "dq", "qi", "oth"] {
            let jwk = TestKeys.rsa.publicKey.jwk.dropLast() + #","\#(member)":"AA"}"#
            #expect(code(String(jwk)) == .secretKey)
        }
        #expect(code(#"{"kty":"oct","k":"AA"}"#) == .secretKey)
    }

    /// Otherwise every unterminated header is searched to the end, which takes seconds for 64 KiB.
    @Test func parsingStopsAfterAnUnterminatedPrivateKeyHeader() throws {
        let text = String(repeating: "-----BEGIN PRIVATE KEY-----", count: 300)
        #expect(try PEMBlock.parse(text).map(\.label) == ["PRIVATE KEY"])
        #expect(code(text) == .secretKey)
    }

    @Test func textThatIsNotAKeyIsRejected() throws {
        let pem = TestKeys.rsa.publicKey.pem
        let lines = pem.split(separator: "\n")
        let der = TestKeys.rsa.publicKey.key.subjectPublicKeyInfo
        let bad: [(String, JOSEError.Code)] = [
            ("", .unreadableKey), ("hello", .unreadableKey), (String(pem.dropLast(30)), .unreadableKey),
            (
                lines.dropLast(3).joined(separator: "\n") + "\n" + String(lines[lines.count - 1]),
                .unreadableKey
            ),
            (pem + pem, .unreadableKey), (pem.replacingOccurrences(of: "MII", with: "M!I"), .unreadableKey),
            (PEMBlock.write("PUBLIC KEY", der + [0]), .unreadableKey),
            (PEMBlock.write("PUBLIC KEY", Array(der.dropLast())), .unreadableKey),
            (PEMBlock.write("RSA PUBLIC KEY", der), .unreadableKey),
            (PEMBlock.write("CERTIFICATE", der), .unreadableKey),
            (PEMBlock.write("PGP PUBLIC KEY BLOCK", der), .unsupportedKey),
            (String(repeating: " ", count: 70_000), .unreadableKey),
            ("{}", .unreadableKey), ("{", .unreadableKey), (#"{"kty":1}"#, .unreadableKey),
            (#"{"keys":[]}"#, .unreadableKey), (#"{"kty":"RSA","n":"AQ"}"#, .unreadableKey),
            (#"{"kty":"RSA","kty":"EC"}"#, .unreadableKey), (#"{"kty":"rsa"}"#, .unsupportedKey),
            (#"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#, .unsupportedKey),
            (#"{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}"#, .unsupportedKey),
            (#"{"kty":"OKP","crv":"X25519","x":"AA"}"#, .unsupportedKey),
        ]
        for (text, expected) in bad { #expect(code(text) == expected, "\(text.prefix(50))") }
    }

    /// Error texts for imported keys. They repeat no part of a key.
    @Test(arguments: [
        ("{}", "the JWK has no kty"), (#"{"keys":[]}"#, "this is a JWK Set; import it as a set"),
        (#"{"kty":"RSA","alg":"RS512"}"#, "the key's alg is not supported"),
    ])
    func theReasonNamesTheFault(text: String, reason: String) {
        #expect(#expect(throws: JOSEError.self) { try PublicKey(text: text) }?.reason == reason)
    }

    @Test func unknownMembersOfAJWKAreIgnored() {
        #expect(code(String(TestKeys.ec.publicKey.jwk.dropLast()) + #","keys":[]}"#) == nil)
    }

    @Test func aTextOfMoreThan64KiBIsNotRead() {
        let pem = TestKeys.ec.publicKey.pem
        let blank = String(repeating: " ", count: 65_536 - pem.utf8.count)
        #expect(code(blank + pem) == nil)
        #expect(code(blank + " " + pem) == .unreadableKey)
    }

    @Test func keysOfOtherTypesAreRejectedByTheirIdentifier() {
        #expect(code(Fixtures.p384) == .unsupportedKey)
        #expect(code(Fixtures.x25519) == .unsupportedKey)
        #expect(code(Fixtures.pssOnly) == .unsupportedKey)
        #expect(code(Fixtures.rsa1024) == .weakKey)
    }

    private func rsa(_ modulus: [UInt8], _ exponent: [UInt8]) -> String {
        #"{"kty":"RSA","n":"\#(Base64URL.encode(modulus))","e":"\#(Base64URL.encode(exponent))"}"#
    }

    @Test func rsaModuliAndExponentsOutsideTheirBoundsAreRejected() {
        let odd256 = [0x80] + [UInt8](repeating: 1, count: 255)
        #expect(code(rsa(odd256, [1, 0, 1])) == nil)
        #expect(code(rsa([0] + odd256, [0, 3])) == nil)
        #expect(code(rsa([0x7F] + odd256.dropFirst(), [1, 0, 1])) == .weakKey)
        #expect(code(rsa([0x80] + [UInt8](repeating: 1, count: 1023), [1, 0, 1])) == nil)
        #expect(code(rsa([0x01] + [UInt8](repeating: 1, count: 1024), [1, 0, 1])) == .weakKey)
        #expect(code(rsa(odd256.dropLast() + [2], [1, 0, 1])) == .weakKey)
        for exponent: [UInt8] in [[0], [1], [2], [4], [1, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0, 1]] {
            #expect(code(rsa(odd256, exponent)) == .weakKey)
        }
        #expect(code(rsa([], [3])) == .unreadableKey)
    }

    @Test func pointsMustBeOnTheirCurve() throws {
        let point = try #require(TestKeys.ec.publicKey.point)
        let (x, y) = (Array(point[1..<33]), Array(point[33...]))
        func ec(_ x: [UInt8], _ y: [UInt8]) -> String {
            #"{"kty":"EC","crv":"P-256","x":"\#(Base64URL.encode(x))","y":"\#(Base64URL.encode(y))"}"#
        }
        let zero = [UInt8](repeating: 0, count: 32)
        #expect(code(ec(x, y)) == nil)
        #expect(code(ec(y, x)) == .invalidPoint)
        #expect(code(ec(zero, zero)) == .invalidPoint)
        #expect(code(ec([UInt8](repeating: 0xFF, count: 32), y)) == .invalidPoint)
        #expect(code(ec(Array(x.dropLast()), y)) == .unreadableKey)
        #expect(code(ec([0] + x, y)) == .unreadableKey)
    }

    /// For a point of small order, RFC 8032's equation holds for a signature of zeros.
    @Test(arguments: [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        "0200000000000000000000000000000000000000000000000000000000000000",
    ])
    func ed25519PointsOfSmallOrderOrOffTheCurveAreRejected(hex: String) {
        let digits = Array(hex)
        let bytes = (0..<32).map { UInt8(String(digits[$0 * 2...$0 * 2 + 1]), radix: 16) ?? 0 }
        #expect(code(#"{"kty":"OKP","crv":"Ed25519","x":"\#(Base64URL.encode(bytes))"}"#) == .invalidPoint)
    }

    @Test func generatedEd25519KeysAreValid() throws {
        for _ in 0..<50 { _ = try SigningKey.generate(.ed25519) }
    }

    @Test(
        arguments: [
            (#""use":"sig""#, nil), (#""use":"enc""#, .keyNotForVerification),
            (#""use":1"#, .keyNotForVerification),
            (#""key_ops":["verify"]"#, nil), (#""key_ops":["sign","verify"]"#, nil),
            (#""key_ops":["encrypt"]"#, .keyNotForVerification), (#""key_ops":[]"#, .keyNotForVerification),
            (#""key_ops":"verify""#, .keyNotForVerification), (#""alg":"RS256""#, nil),
            (#""alg":"PS256""#, nil),
            (#""alg":"RS512""#, .keyNotForVerification), (#""alg":"ES256""#, .keyNotForVerification),
            (#""alg":"RSA-OAEP""#, .keyNotForVerification), (#""alg":null"#, .keyNotForVerification),
            (#""x5u":"https://evil.example","kid":7"#, nil),
        ] as [(String, JOSEError.Code?)])
    func useKeyOpsAndAlgOfAJWKAreRespected(member: String, expected: JOSEError.Code?) throws {
        let key = try #require(TestKeys.rsa.publicKey.rsaNumbers)
        #expect(code(String(rsa(key.modulus, key.exponent).dropLast()) + ",\(member)}") == expected)
    }

    @Test func aKeyIsBoundToOneAlgorithm() throws {
        #expect(try PublicKey(pem: TestKeys.rsa.publicKey.pem).algorithm == nil)
        #expect(try PublicKey(pem: TestKeys.rsa.publicKey.pem, algorithm: .ps256).algorithm == .ps256)
        #expect(throws: JOSEError.self) { try PublicKey(pem: TestKeys.ec.publicKey.pem, algorithm: .rs256) }
        #expect(throws: JOSEError.self) { try PublicKey(jwk: TestKeys.rsa.publicKey.jwk, algorithm: .ps256) }
    }

    @Test func noErrorRepeatsTheKey() throws {
        let pem = TestKeys.rsa.privatePEM
        let error = try #require(#expect(throws: JOSEError.self) { try PublicKey(pem: pem) })
        for line in pem.split(separator: "\n").dropFirst().dropLast() {
            #expect(!"\(error)".contains(line))
        }
    }
}

struct JWKSetTests {
    @Test func aSetReturnsUsableKeysAndReasonsForTheOthers() throws {
        let json = """
            {"x":1,"keys":[\(TestKeys.rsa.publicKey.jwk),{"kty":"RSA","use":"enc","kid":"e"},{"kty":"new"},3,
            \(TestKeys.ec.publicKey.jwk)]}
            """
        let set = try JWKSet(json: json)
        #expect(set.keys.map(\.thumbprint) == [TestKeys.rsa, TestKeys.ec].map(\.publicKey.thumbprint))
        #expect(
            set.members.map(\.problem?.code)
                == [nil, .keyNotForVerification, .unsupportedKey, .unreadableKey, nil])
        #expect(set.members[1].kid == "e")
    }

    @Test(arguments: ["", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[],"keys":[]}"#])
    func documentsWithoutOneKeysArrayAreRejected(json: String) {
        #expect(throws: JOSEError.self) { try JWKSet(json: json) }
    }

    @Test func aSymmetricKeyInAJWKSetIsAnError() {
        #expect(throws: JOSEError.self) { try JWKSet(json: #"{"keys":[{"kty":"oct","k":"AA"}]}"#) }
    }

    @Test func aMemberThatIsNotAnObjectIsReported() throws {
        let set = try JWKSet(json: #"{"keys":[3]}"#)
        #expect(set.members.map(\.problem?.reason) == ["a JWK must be one JSON object"])
    }

    @Test func aWrittenJWKSetIsReadBack() throws {
        let keys = [TestKeys.rsa, TestKeys.pss, TestKeys.ec, TestKeys.ed].map(\.publicKey)
        let set = try JWKSet(json: JWKSet(keys: keys).json)
        #expect(set.keys.map(\.thumbprint) == keys.map(\.thumbprint))
        #expect(set.keys.map(\.algorithm) == [.rs256, .ps256, .es256, .edDSA])
        #expect(set.members.map(\.kid) == keys.map(\.thumbprint))
    }

    @Test func aSetOfMoreThan64KeysIsRejected() throws {
        let many = Array(repeating: "{}", count: 65).joined(separator: ",")
        #expect(throws: JOSEError.self) { try JWKSet(json: #"{"keys":[\#(many)]}"#) }
    }
}

struct SigningKeyTests {
    @Test func unsupportedKeySizesAndAlgorithmsAreNotGenerated() {
        for bits in [1024, 2047, 2050, 8200] {
            #expect(throws: JOSEError.self) { try SigningKey.generate(.rs256, bits: bits) }
        }
        #expect(throws: JOSEError.self) { try SigningKey.generate(JWSAlgorithm(rawValue: "HS256")) }
    }

    @Test func aPublicOrEncryptedKeyCannotSign() {
        #expect(throws: JOSEError.self) { try SigningKey(pem: TestKeys.rsa.publicKey.pem) }
        #expect(throws: JOSEError.self) { try SigningKey(pem: TestKeys.ec.privatePEM, algorithm: .rs256) }
        do throws(JOSEError) {
            _ = try SigningKey(
                pem: "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----")
            Issue.record("an encrypted key was read")
        } catch {
            #expect(error.reason.contains("openssl pkey"))
        }
    }

    @Test func aPEMWithTwoPrivateKeysIsRejected() {
        let pem = TestKeys.ec.privatePEM
        #expect(throws: JOSEError.self) { try SigningKey(pem: pem + TestKeys.otherEC.privatePEM) }
        #expect(throws: JOSEError.self) { try SigningKey(pem: "") }
    }

    @Test func aSEC1PrivateKeyIsRead() throws {
        #expect(try SigningKey(pem: Fixtures.sec1).algorithm == .es256)
    }
}
