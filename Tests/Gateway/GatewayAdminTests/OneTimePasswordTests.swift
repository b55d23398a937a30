import CountersignCrypto
import Testing

@testable import GatewayAdmin
@testable import GatewayModel

/// One-time passwords (RFC 4226, RFC 6238) and the QR code of their secret.
struct OneTimePasswordTests {
    private let sample = OneTimePassword(secret: Array("12345678901234567890".utf8))

    /// RFC 4226, appendix D.
    @Test(
        arguments: zip(
            0..<10,
            [
                "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871",
                "520489",
            ]))
    func hotpCodesEqualTheRFCExamples(counter: Int, code: String) {
        #expect(sample.code(Int64(counter)) == code)
    }

    /// RFC 6238, appendix B, the rows of SHA-1.
    @Test(arguments: [
        (59, "94287082"), (1_111_111_109, "07081804"), (1_111_111_111, "14050471"),
        (1_234_567_890, "89005924"), (2_000_000_000, "69279037"), (20_000_000_000, "65353130"),
    ])
    func totpCodesEqualTheRFCExamples(seconds: Int64, code: String) {
        #expect(sample.code(seconds * 1000 / OneTimePassword.stepMilliseconds, digits: 8) == code)
        #expect(sample.step(of: String(code.suffix(6)), at: seconds * 1000, after: 0) == seconds / 30)
    }

    @Test func codesAreValidOneStepAroundNowAndOnce() {
        let now: Int64 = 1_800_000_000_000
        let step = now / 30_000
        for (offset, isGood) in [(-2, false), (-1, true), (0, true), (1, true), (2, false)] as [(Int64, Bool)]
        {
            let code = sample.code(step + offset)
            #expect((sample.step(of: code, at: now, after: 0) == step + offset) == isGood, "\(offset)")
            #expect(sample.step(of: code, at: now, after: step + offset) == nil)
        }
        // A code older than the last used one is not valid either.
        #expect(sample.step(of: sample.code(step - 1), at: now, after: step) == nil)
        #expect(sample.step(of: "", at: now, after: 0) == nil)
        #expect(sample.step(of: "75522", at: 0, after: -2) == nil)
        #expect(sample.code(10_281) == "092555", "a code is padded to six digits")
    }

    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foob", "MZXW6YQ"), ("fooba", "MZXW6YTB"),
        ("foobar", "MZXW6YTBOI"),
    ])
    func base32EqualsTheRFCExamples(text: String, encoded: String) {
        #expect(Base32.encode(Array(text.utf8)) == encoded)
    }

    @Test func theURIIsEscaped() {
        let uri = sample.uri(user: "ada?secret=A&x", host: "gate.example:8787")
        #expect(
            uri == "otpauth://totp/Countersign:ada%3Fsecret%3DA%26x%40gate.example%3A8787"
                + "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Countersign&algorithm=SHA1&digits=6&period=30"
        )
        #expect(OneTimePassword().secret.count == 20 && OneTimePassword().secret != OneTimePassword().secret)
    }

    @Test func theQRCodeIsASquareWithThreeFinderPatterns() throws {
        let rows = try #require(QRCode.rows(sample.uri(user: "ada", host: nil)))
        #expect(rows.count >= 21 && (rows.count - 17) % 4 == 0)
        #expect(rows.allSatisfy { $0.count == rows.count && $0.allSatisfy { "01".contains($0) } })
        let finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
        #expect(rows.prefix(7).map { String($0.prefix(7)) } == finder)
        #expect(rows.prefix(7).map { String($0.suffix(7)) } == finder)
        #expect(rows.suffix(7).map { String($0.prefix(7)) } == finder)
        #expect(QRCode.rows(String(repeating: "x", count: 5_000)) == nil)
    }

    @Test func recoveryCodesIgnoreCaseAndSeparators() {
        let code = RecoveryCode.random()
        #expect(code.count == 19 && code.split(separator: "-").map(\.count) == [4, 4, 4, 4])
        #expect(RecoveryCode.hash(code) == RecoveryCode.hash(code.uppercased().replacing("-", with: " ")))
        #expect(RecoveryCode.hash(code) != RecoveryCode.hash(RecoveryCode.random()))
    }
}
