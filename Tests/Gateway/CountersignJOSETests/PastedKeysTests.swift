import Testing

@testable import CountersignJOSE

struct PastedKeysTests {
    @Test func pemJWKJWKSetAndCertificateTextsAreRead() throws {
        let (rsa, ec) = (TestKeys.rsa.publicKey, TestKeys.ec.publicKey)
        let forms: [(String, [PublicKey], PastedKeys.Source)] = [
            (rsa.pem + ec.pem, [rsa, ec], .pem), (" \n" + ec.jwk, [ec], .jwk),
            (JWKSet(keys: [rsa, ec]).json, [rsa, ec], .jwks),
            (Fixtures.certificate, [try PublicKey(pem: Fixtures.spki)], .certificate),
        ]
        for (text, keys, source) in forms {
            let pasted = try PastedKeys(text: text)
            #expect(pasted.items.map(\.key.thumbprint) == keys.map(\.thumbprint))
            #expect(pasted.items.allSatisfy { $0.source == source })
            #expect(pasted.problems.isEmpty)
        }
    }

    @Test func moreThan64PEMBlocksAreRejected() throws {
        let pem = TestKeys.ed.publicKey.pem
        #expect(try PastedKeys(text: String(repeating: pem, count: 64)).items.count == 64)
        let error = #expect(throws: JOSEError.self) {
            try PastedKeys(text: String(repeating: pem, count: 65))
        }
        #expect(error?.code == .tooManyKeys)
    }

    @Test(arguments: [
        ("", "no PEM block: the text must begin with -----BEGIN PUBLIC KEY-----, or be a JWK"),
        (#"{"keys":[]}"#, "the text contains no public key"),
        (#"{"keys":[{"kty":"oct"}]}"#, "the kty is not RSA, EC or OKP"),
        (#"{"keys":{}}"#, "a JWK Set is an object with a keys array"),
        ("{}", "the JWK has no kty"),
    ])
    func theReasonNamesTheMissingPart(text: String, reason: String) {
        let error = #expect(throws: JOSEError.self) { try PastedKeys(text: text) }
        #expect(error?.code == .unreadableKey || error?.code == .unsupportedKey)
        #expect(error?.reason == reason)
    }

    @Test func aPrivateOrSymmetricKeyIsAnError() {
        for text in [
            TestKeys.ec.publicKey.pem + TestKeys.ec.privatePEM, #"{"keys":[{"kty":"oct","k":"AA"}]}"#,
            #"{"kty":"oct","k":"AA"}"#,
        ] {
            #expect(#expect(throws: JOSEError.self) { try PastedKeys(text: text) }?.code == .secretKey)
        }
    }
}
