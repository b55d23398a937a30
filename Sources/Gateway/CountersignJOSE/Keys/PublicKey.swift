internal import COpenSSL
internal import CountersignCore
internal import CountersignCrypto

/// A public key for verifying signatures: RSA of 2048 to 8192 bits, P-256 or Ed25519. Validated at creation.
public final class PublicKey: Sendable {
    /// The JWK's `kid`; nil for a PEM key or a JWK without one.
    public let kid: String?
    /// The only algorithm of the key (RFC 8725, section 3.1). Nil for an RSA key without `alg`, for which the
    /// app's allow-list determines whether RS256 or PS256 is used.
    public let algorithm: JWSAlgorithm?
    /// The size in bits: that of the modulus for RSA, otherwise 256.
    public let bits: Int
    /// The RFC 7638 thumbprint: base64url of the SHA-256 over the key's required members. Independent of the
    /// format that the key was read from.
    public let thumbprint: String

    let key: EVPKey
    /// The numbers of the key. A P-256 point is uncompressed.
    let material: KeyMaterial

    /// Parses one public key: a JWK if the text begins with `{`, otherwise PEM.
    ///
    /// - Parameters:
    ///   - text: PEM or JWK; at most 64 KiB.
    ///   - algorithm: Binds the key to this algorithm; nil uses the key's own.
    /// - Throws: ``JOSEError`` with the reason.
    public convenience init(
        text: String, algorithm: JWSAlgorithm? = nil
    ) throws(JOSEError) {
        let first = text.utf8.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if first == UInt8(ascii: "{") {
            try self.init(jwk: text, algorithm: algorithm)
        } else {
            try self.init(pem: text, algorithm: algorithm)
        }
    }

    /// Parses `PUBLIC KEY` (SPKI), `RSA PUBLIC KEY` (PKCS#1) or `CERTIFICATE` (X.509, without checking dates
    /// and issuer).
    ///
    /// - Parameters:
    ///   - pem: One PEM block (RFC 7468); at most 64 KiB.
    ///   - algorithm: Binds the key to this algorithm; with nil, the app's allow-list determines an RSA key's
    ///     algorithm.
    /// - Throws: ``JOSEError``, with code `secretKey` for a private key.
    public convenience init(pem: String, algorithm: JWSAlgorithm? = nil) throws(JOSEError) {
        let blocks = try PEMBlock.parse(pem)
        if blocks.contains(where: { $0.label.contains("PRIVATE KEY") }) { throw Self.privateKeyGiven }
        guard let block = blocks.first else {
            throw JOSEError(
                .unreadableKey, "no PEM block: the text must begin with -----BEGIN PUBLIC KEY-----")
        }
        guard blocks.count == 1 else {
            throw JOSEError(.unreadableKey, "\(blocks.count) PEM blocks; pass one key")
        }
        let material: KeyMaterial =
            switch block.label {
            case "PUBLIC KEY": try KeyMaterial(subjectPublicKeyInfo: block.bytes)
            case "RSA PUBLIC KEY": try KeyMaterial(pkcs1: block.bytes[...])
            case "CERTIFICATE": try KeyMaterial(certificate: block.bytes)
            default: throw JOSEError(.unsupportedKey, "this PEM block is not a public key or certificate")
            }
        try self.init(material, algorithm: algorithm, kid: nil)
    }

    init(_ material: KeyMaterial, algorithm: JWSAlgorithm?, kid: String?) throws(JOSEError) {
        let key = try material.makeKey()
        let material = material.uncompressed(key)
        if let algorithm, !material.serves(algorithm) {
            throw JOSEError(.keyNotForVerification, "a key of this type is not for \(algorithm.rawValue)")
        }
        self.kid = kid
        self.key = key
        self.algorithm = algorithm ?? material.onlyAlgorithm
        bits = Int(EVP_PKEY_get_bits(key.pointer))
        self.material = material
        thumbprint = Base64URL.encode(SHA256.digest(material.canonicalJSON))
    }

    static let privateKeyGiven = JOSEError(
        .secretKey,
        "this is a private key: it must never leave your backend. Treat it as leaked, make a new pair, "
            + "and pass the public half")

    func verifies(_ scheme: SignatureScheme) -> Bool {
        if let algorithm { return algorithm.scheme == scheme }
        return scheme == .rsaPKCS1 || scheme == .rsaPSS
    }

    /// The JWK key type: `RSA`, `EC` or `OKP` (RFC 7518, section 6.1; RFC 8037, section 2).
    public var keyType: String { material.type }

    /// The key as PEM `PUBLIC KEY` (SPKI), with a newline at the end.
    public var pem: String { PEMBlock.write("PUBLIC KEY", key.subjectPublicKeyInfo) }

    /// The key as a JWK (RFC 7517): its numbers, `use`, `kid` (the thumbprint if the key has none) and `alg`
    /// if the key is bound to an algorithm.
    public var jwk: String {
        var members = material.members
        members.append(("use", "sig"))
        members.append(("kid", kid ?? thumbprint))
        if let algorithm { members.append(("alg", algorithm.rawValue)) }
        return KeyMaterial.json(members)
    }
}

extension PublicKey: CustomStringConvertible {
    /// Type, size and thumbprint. Safe to log.
    public var description: String { "\(keyType) \(bits) \(thumbprint)" }
}
