import Testing

@testable import CountersignCrypto
@testable import CountersignJOSE

struct DERReaderTests {
    private static let content = [UInt8](repeating: 7, count: 0x80)

    /// DER allows one encoding of a length (X.690, section 10.1).
    @Test(
        arguments: [
            [], [0x30], [0x31, 0], [0x30, 1], [0x30, 0x7F] + content.dropLast(2),
            [0x30, 0x80, 0, 0],
            [0x30, 0x81], [0x30, 0x82, 1], [0x30, 0x83, 1, 0],
            [0x30, 0x81, 1, 7], [0x30, 0x81, 0x7F] + content,
            [0x30, 0x82, 0, 0x80] + content, [0x30, 0x83, 0, 0, 0x80] + content,
            [0x30, 0x84, 0, 0, 0, 0x80] + content,
            // A 72-bit length whose lower 64 bits are the length of the content.
            [0x30, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0x80] + content,
        ] as [[UInt8]])
    func truncatedAndMalformedInputIsRejected(bytes: [UInt8]) {
        var reader = DERReader(bytes[...])
        #expect(reader.read(DERReader.sequence) == nil)
    }

    @Test func aValueEndsAtItsDERLength() {
        var reader = DERReader(([0x30, 0x81, 0x80] + Self.content + [0x05, 0])[...])
        #expect(reader.read(DERReader.sequence).map(Array.init) == Self.content)
        #expect(!reader.isAtEnd)
        #expect(reader.read(DERReader.null)?.isEmpty == true)
        #expect(reader.isAtEnd)
    }
}

/// Valid SubjectPublicKeyInfo, and some with a wrong part (RFC 5280, section 4.1.2.7).
struct SubjectPublicKeyInfoTests {
    private let rsa = der(0x06, [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01])
    private let ec = der(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01])
    private let p256 = der(0x06, [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07])
    private let ed25519 = der(0x06, [0x2B, 0x65, 0x70])
    private let null: [UInt8] = [0x05, 0]

    private static func der(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        let count = content.count
        let length: [UInt8] =
            switch count {
            case ..<0x80: [UInt8(count)]
            case ..<0x100: [0x81, UInt8(count)]
            default: [0x82, UInt8(count >> 8), UInt8(count & 0xFF)]
            }
        return [tag] + length + content
    }

    private func code(_ label: String, _ bytes: [UInt8]) -> JOSEError.Code? {
        do throws(JOSEError) {
            _ = try PublicKey(pem: PEMBlock.write(label, bytes))
            return nil
        } catch {
            return error.code
        }
    }

    private func code(_ identifier: [UInt8], bitString: [UInt8]) -> JOSEError.Code? {
        code(
            "PUBLIC KEY",
            Self.der(0x30, Self.der(0x30, identifier) + Self.der(0x03, bitString)))
    }

    private func code(_ identifier: [UInt8], key: [UInt8]) -> JOSEError.Code? {
        code(identifier, bitString: [0] + key)
    }

    @Test func anEd25519KeyHas32BytesAndNoParameters() throws {
        let key = try #require(TestKeys.ed.publicKey.edwardsKey)
        #expect(code(ed25519, key: key) == nil)
        #expect(code(ed25519 + null, key: key) == .unreadableKey)
        for other in [[], Array(key.dropLast()), key + [0]] {
            #expect(code(ed25519, key: other) == .invalidPoint)
        }
        #expect(code(ed25519, bitString: [1] + key) == .unreadableKey)
        #expect(code(ed25519, bitString: []) == .unreadableKey)
    }

    @Test func aP256KeyIsAPointWithOnlyItsCurveAsParameter() throws {
        let point = try #require(TestKeys.ec.publicKey.point)
        let (x, y) = (Array(point[1..<33]), Array(point[33...]))
        let parity = y[31] & 1
        #expect(code(ec + p256, key: point) == nil)
        #expect(code(ec + p256, key: [2 | parity] + x) == nil)
        #expect(code(ec + p256 + null, key: point) == .unreadableKey)
        let others: [[UInt8]] = [
            [], [0], [0] + x + y, [6 | parity] + x + y, Array(point.dropLast()), point + [0], [4] + x,
            [2 | parity] + x + y, [2 | parity] + x.dropLast(), [2],
        ]
        for other in others { #expect(code(ec + p256, key: other) == .invalidPoint, "\(other)") }
    }

    @Test func anRSAKeyHasExactlyTwoIntegers() throws {
        let (modulus, exponent) = try #require(TestKeys.rsa.publicKey.rsaNumbers)
        let numbers = Self.der(0x02, [0] + modulus) + Self.der(0x02, exponent)
        let key = Self.der(0x30, numbers)
        for identifier in [rsa, rsa + null] { #expect(code(identifier, key: key) == nil) }
        for identifier in [rsa + [0x05, 1, 0], rsa + p256, rsa + null + null] {
            #expect(code(identifier, key: key) == .unreadableKey)
        }
        #expect(code("RSA PUBLIC KEY", key) == nil)
        for other in [key + [0], Self.der(0x30, numbers + null)] {
            #expect(code(rsa + null, key: other) == .unreadableKey)
            #expect(code("RSA PUBLIC KEY", other) == .unreadableKey)
        }
    }
}
