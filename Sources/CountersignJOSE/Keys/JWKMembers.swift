internal import COpenSSL
internal import CountersignCore

/// The members of a JWK that are the key itself.
enum JWKMembers: Sendable {
    case rsa(modulus: [UInt8], exponent: [UInt8])
    case p256(x: [UInt8], y: [UInt8])
    case ed25519([UInt8])

    init(p256 key: EVPKey) throws(JOSEError) {
        self = .p256(
            x: Self.coordinate(OSSL_PKEY_PARAM_EC_PUB_X, of: key),
            y: Self.coordinate(OSSL_PKEY_PARAM_EC_PUB_Y, of: key))
    }

    private static func coordinate(_ name: String, of key: EVPKey) -> [UInt8] {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key.pointer, name, &number) == 1 else {
            preconditionFailure("a P-256 key has both coordinates")
        }
        defer { BN_free(number) }
        return [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            BN_bn2binpad(number, buffer.baseAddress, 32)
            count = 32
        }
    }

    var type: String {
        switch self {
        case .rsa: "RSA"
        case .p256: "EC"
        case .ed25519: "OKP"
        }
    }

    /// The algorithm of a key whose type leaves no choice.
    var onlyAlgorithm: JWSAlgorithm? {
        switch self {
        case .rsa: nil
        case .p256: .es256
        case .ed25519: .edDSA
        }
    }

    func serves(_ algorithm: JWSAlgorithm) -> Bool {
        switch self {
        case .rsa: algorithm.scheme == .rsaPKCS1 || algorithm.scheme == .rsaPSS
        case .p256: algorithm.scheme == .ecdsaP256
        case .ed25519: algorithm.scheme == .ed25519
        }
    }

    /// In the order that RFC 7638, section 3.2, asks for.
    var members: [(String, String)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("e", Base64URL.encode(exponent)), ("kty", "RSA"), ("n", Base64URL.encode(modulus))]
        case .p256(let x, let y):
            [("crv", "P-256"), ("kty", "EC"), ("x", Base64URL.encode(x)), ("y", Base64URL.encode(y))]
        case .ed25519(let bytes):
            [("crv", "Ed25519"), ("kty", "OKP"), ("x", Base64URL.encode(bytes))]
        }
    }

    var canonicalJSON: String { Self.json(members) }

    static func json(_ members: [(String, String)]) -> String {
        var output: [UInt8] = [UInt8(ascii: "{")]
        for (index, member) in members.enumerated() {
            if index > 0 { output.append(UInt8(ascii: ",")) }
            JSONValue.write(member.0, to: &output)
            output.append(UInt8(ascii: ":"))
            JSONValue.write(member.1, to: &output)
        }
        output.append(UInt8(ascii: "}"))
        return String(decoding: output, as: UTF8.self)
    }
}
