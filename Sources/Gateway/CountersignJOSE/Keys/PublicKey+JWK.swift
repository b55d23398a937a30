internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON

extension PublicKey {
    /// Parses a JWK (RFC 7517) of type RSA, EC (P-256) or OKP (Ed25519).
    ///
    /// `use`, `key_ops` and `alg` are checked: a key for encryption or for an unsupported algorithm is
    /// rejected. Other members are ignored, including `x5c` and `x5u`.
    ///
    /// - Parameters:
    ///   - jwk: One JSON object; at most 64 KiB. For a set see ``JWKSet``.
    ///   - algorithm: Binds the key to this algorithm, which must not contradict the JWK's `alg`.
    /// - Throws: ``JOSEError``, with code `secretKey` for a private or symmetric key.
    public convenience init(jwk: String, algorithm: JWSAlgorithm? = nil) throws(JOSEError) {
        let fields: JWKFields
        do {
            fields = try StrictJSONParser(maximumBytes: 65_536, maximumDepth: 16)
                .parse(bytes: Array(jwk.utf8)) { try JWKFields($0) }
        } catch let error as JOSEError {
            throw error
        } catch {
            throw JOSEError(.unreadableKey, "the JWK is not one JSON object without duplicate members")
        }
        try self.init(fields, algorithm: algorithm)
    }

    convenience init(_ fields: JWKFields, algorithm: JWSAlgorithm? = nil) throws(JOSEError) {
        if let algorithm, let own = fields.algorithm, algorithm.scheme != own.scheme {
            throw JOSEError(.keyNotForVerification, "the JWK's alg is not \(algorithm.rawValue)")
        }
        try self.init(fields.material, algorithm: algorithm ?? fields.algorithm, kid: fields.kid)
    }
}

struct JWKFields {
    let material: KeyMaterial
    let algorithm: JWSAlgorithm?
    let kid: String?

    /// Members that only a private or symmetric key has (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1).
    private static let secrets: [StaticString] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]

    init(_ node: JSONNode) throws(JOSEError) {
        guard node.kind == .object else {
            throw JOSEError(.unreadableKey, "a JWK must be one JSON object")
        }
        if Self.secrets.contains(where: { node[$0] != nil }) { throw PublicKey.privateKeyGiven }
        if node["keys"] != nil, node["kty"] == nil {
            throw JOSEError(.unreadableKey, "this is a JWK Set; import it as a set")
        }
        kid = node["kid"]?.string
        algorithm = try Self.checkPurpose(node)
        let type = node["kty"]?.word
        let curve = node["crv"]?.word
        switch (type, curve) {
        case ("RSA", _):
            let modulus = try Self.number("n", node)
            let exponent = try Self.number("e", node)
            material = .rsa(modulus: modulus, exponent: exponent)
        case ("EC", "P-256"):
            let x = try Self.octets("x", node, count: 32)
            let y = try Self.octets("y", node, count: 32)
            material = .p256(point: [4] + x + y)
        case ("OKP", "Ed25519"):
            material = .ed25519(try Self.octets("x", node, count: 32))
        case ("EC", _), ("OKP", _):
            throw JOSEError(.unsupportedKey, "a key on another curve than P-256 or Ed25519")
        case (nil, _) where node["kty"]?.kind != .string:
            throw JOSEError(.unreadableKey, "the JWK has no kty")
        default:
            throw JOSEError(.unsupportedKey, "the kty is not RSA, EC or OKP")
        }
    }

    /// Checks `use`, `key_ops` and `alg` (RFC 7517, sections 4.2 to 4.4). Returns `alg`, if the key has one.
    private static func checkPurpose(_ node: JSONNode) throws(JOSEError) -> JWSAlgorithm? {
        if let use = node["use"] {
            guard use.word == "sig" else {
                throw JOSEError(.keyNotForVerification, "the key's use is not sig")
            }
        }
        if let operations = node["key_ops"] {
            guard operations.kind == .array, operations.elements.contains(where: { $0.word == "verify" })
            else {
                throw JOSEError(.keyNotForVerification, "the key's key_ops do not contain verify")
            }
        }
        guard let alg = node["alg"] else { return nil }
        guard let name = alg.word, JWSAlgorithm(rawValue: name).scheme != nil else {
            throw JOSEError(.keyNotForVerification, "the key's alg is not supported")
        }
        return JWSAlgorithm(rawValue: name)
    }

    private static func octets(
        _ name: StaticString, _ node: JSONNode, count: Int? = nil
    ) throws(JOSEError) -> [UInt8] {
        guard let text = node[name]?.utf8, let bytes = Base64URL.decode(text), !bytes.isEmpty else {
            throw JOSEError(.unreadableKey, "the JWK's \(name) is missing or not base64url without padding")
        }
        if let count, bytes.count != count {
            throw JOSEError(.unreadableKey, "the JWK's \(name) must be \(count) bytes long")
        }
        return bytes
    }

    /// Drops leading zeros, which some libraries write contrary to RFC 7518, section 6.3.1.1.
    private static func number(_ name: StaticString, _ node: JSONNode) throws(JOSEError) -> [UInt8] {
        Array(try octets(name, node).drop { $0 == 0 })
    }
}
