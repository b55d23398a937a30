internal import CountersignCore
internal import CountersignCrypto

extension KeyMaterial {
    var type: String {
        switch self {
        case .rsa: "RSA"
        case .p256: "EC"
        case .ed25519: "OKP"
        }
    }

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

    /// The JWK members in the order of RFC 7638, section 3.2. A P-256 point must be uncompressed.
    var members: [(String, String)] {
        switch self {
        case .rsa(let modulus, let exponent):
            [("e", Base64URL.encode(exponent)), ("kty", "RSA"), ("n", Base64URL.encode(modulus))]
        case .p256(let point):
            [
                ("crv", "P-256"), ("kty", "EC"), ("x", Base64URL.encode(Array(point[1..<33]))),
                ("y", Base64URL.encode(Array(point[33...]))),
            ]
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
