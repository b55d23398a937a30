internal import COpenSSL
public import CountersignCore
internal import CountersignCrypto

/// A private key for signing tokens. Descriptions omit the private part.
public final class SigningKey: Sendable {
    /// The algorithm with which the key signs.
    public let algorithm: JWSAlgorithm
    /// The public key, bound to the same algorithm.
    public let publicKey: PublicKey

    private let key: EVPKey

    /// Generates a key.
    ///
    /// - Parameters:
    ///   - algorithm: The algorithm of the key.
    ///   - bits: The size of an RSA key, 2048 to 8192 in steps of 8; ignored for other algorithms.
    /// - Returns: A key from OpenSSL's random generator. RSA takes from 50 ms to seconds.
    /// - Throws: ``JOSEError`` with code `weakKey` for another size, `unsupportedKey` for an unknown algorithm,
    ///   `signingFailed` if OpenSSL fails.
    public static func generate(
        _ algorithm: JWSAlgorithm = .rs256, bits: Int = 2048
    ) throws(JOSEError) -> SigningKey {
        let name: String
        switch algorithm.scheme {
        case .rsaPKCS1, .rsaPSS: name = "RSA"
        case .ecdsaP256: name = "EC"
        case .ed25519: name = "ED25519"
        case nil: throw JOSEError(.unsupportedKey, "no such algorithm: \(algorithm.rawValue)")
        }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, name, nil) else {
            preconditionFailure("OpenSSL has no \(name) keys")
        }
        defer { EVP_PKEY_CTX_free(context) }
        EVP_PKEY_keygen_init(context)
        if name == "RSA" {
            guard (2048...8192).contains(bits), bits % 8 == 0 else {
                throw JOSEError(.weakKey, "an RSA key must have 2048 to 8192 bits, a multiple of 8")
            }
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits))
        } else if name == "EC" {
            EVP_PKEY_CTX_set_group_name(context, "prime256v1")
        }
        var pointer: OpaquePointer?
        guard EVP_PKEY_generate(context, &pointer) == 1, let pointer else {
            ERR_clear_error()
            throw JOSEError(.signingFailed, "OpenSSL could not make a key")
        }
        return try SigningKey(EVPKey(owning: pointer), algorithm: algorithm)
    }

    /// Parses an unencrypted private key: `PRIVATE KEY` (PKCS#8), `RSA PRIVATE KEY` (PKCS#1) or `EC PRIVATE
    /// KEY` (SEC 1).
    ///
    /// - Parameters:
    ///   - pem: The key. A preceding `EC PARAMETERS` block is ignored.
    ///   - algorithm: The algorithm for signing; nil uses RS256, ES256 or EdDSA, depending on the key's type.
    /// - Throws: ``JOSEError`` with the reason.
    public convenience init(pem: String, algorithm: JWSAlgorithm? = nil) throws(JOSEError) {
        let blocks = try PEMBlock.parse(pem).filter { $0.label != "EC PARAMETERS" }
        guard let block = blocks.first, blocks.count == 1 else {
            throw JOSEError(.unreadableKey, "pass one private key in PEM")
        }
        let pointer: OpaquePointer? = block.bytes.withUnsafeBufferPointer { buffer in
            var position = buffer.baseAddress
            switch block.label {
            case "PRIVATE KEY":
                let info = d2i_PKCS8_PRIV_KEY_INFO(nil, &position, buffer.count)
                defer { PKCS8_PRIV_KEY_INFO_free(info) }
                return info.flatMap { EVP_PKCS82PKEY($0) }
            case "RSA PRIVATE KEY": return d2i_PrivateKey(EVP_PKEY_RSA, nil, &position, buffer.count)
            case "EC PRIVATE KEY": return d2i_PrivateKey(EVP_PKEY_EC, nil, &position, buffer.count)
            default: return nil
            }
        }
        guard let pointer else {
            ERR_clear_error()
            throw JOSEError(
                .unreadableKey,
                block.label == "ENCRYPTED PRIVATE KEY"
                    ? "the key is encrypted; decrypt it with `openssl pkey -in FILE -out FILE`"
                    : "not a private key in PKCS#8, PKCS#1 or SEC 1, or it was truncated")
        }
        try self.init(EVPKey(owning: pointer), algorithm: algorithm)
    }

    private init(_ key: EVPKey, algorithm: JWSAlgorithm?) throws(JOSEError) {
        let material = try KeyMaterial(subjectPublicKeyInfo: key.subjectPublicKeyInfo)
        let bound = algorithm ?? material.onlyAlgorithm ?? .rs256
        publicKey = try PublicKey(material, algorithm: bound, kid: nil)
        self.algorithm = bound
        self.key = key
    }

    /// The key as unencrypted PKCS#8 PEM. Store it only in a file that no other user can read.
    public var privatePEM: String {
        guard let info = EVP_PKEY2PKCS8(key.pointer) else {
            preconditionFailure("the key has a private half")
        }
        defer { PKCS8_PRIV_KEY_INFO_free(info) }
        return PEMBlock.write("PRIVATE KEY", derBytes { i2d_PKCS8_PRIV_KEY_INFO(info, $0) })
    }

    /// Signs a set of claims as a compact token.
    ///
    /// - Parameters:
    ///   - claims: The claims; `exp`, `nbf` and `iat` in seconds since 1970.
    ///   - keyID: The header's `kid`; nil omits it.
    ///   - type: The header's `typ`; nil omits it.
    /// - Returns: Header, claims and signature in base64url, joined by dots.
    /// - Throws: ``JOSEError`` with code `signingFailed`.
    public func sign(
        claims: JSONObject, keyID: String? = nil, type: String? = "JWT"
    ) throws(JOSEError) -> String {
        var header: JSONObject = ["alg": .string(algorithm.rawValue)]
        if let type { header["typ"] = .string(type) }
        if let keyID { header["kid"] = .string(keyID) }
        return try sign(header: JSONValue.object(header).bytes, payload: JSONValue.object(claims).bytes)
    }

    /// Signs a header and a payload without checking them.
    package func sign(header: [UInt8], payload: [UInt8]) throws(JOSEError) -> String {
        var token: [UInt8] = []
        Base64URL.encode(header, to: &token)
        token.append(UInt8(ascii: "."))
        Base64URL.encode(payload, to: &token)
        let signature = try signature(for: token)
        token.append(UInt8(ascii: "."))
        Base64URL.encode(signature, to: &token)
        return String(decoding: token, as: UTF8.self)
    }

    /// The signature in JWS format: raw r and s for ES256.
    package func signature(for input: [UInt8]) throws(JOSEError) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
        defer { EVP_MD_CTX_free(context) }
        var parameters: OpaquePointer?
        let method = algorithm.scheme == .ed25519 ? nil : SHA256.algorithm
        var ready = EVP_DigestSignInit(context, &parameters, method, nil, key.pointer) == 1
        if algorithm.scheme == .rsaPSS {
            ready =
                ready && EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1
                && EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
        }
        var length = 1024
        var signature = [UInt8](repeating: 0, count: length)
        guard ready, EVP_DigestSign(context, &signature, &length, input, input.count) == 1 else {
            ERR_clear_error()
            throw JOSEError(.signingFailed, "OpenSSL cannot sign with this key")
        }
        signature.removeLast(signature.count - length)
        return algorithm.scheme == .ecdsaP256 ? ECDSASignature.raw(fromDER: signature) : signature
    }
}

extension SigningKey: CustomStringConvertible {
    /// The public key's description. Safe to log.
    public var description: String { "SigningKey(\(publicKey), \(algorithm.rawValue))" }
}
