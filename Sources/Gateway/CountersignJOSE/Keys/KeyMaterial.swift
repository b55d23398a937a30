internal import COpenSSL
internal import CountersignCrypto

enum KeyMaterial: Sendable {
    /// Modulus and exponent, big-endian.
    case rsa(modulus: [UInt8], exponent: [UInt8])
    /// A point of P-256 in SEC 1 format (section 2.3.3).
    case p256(point: [UInt8])
    /// 32 bytes (RFC 8032, section 5.1.5).
    case ed25519([UInt8])

    private static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    private static let rsaPSS: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0A]
    private static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    private static let prime256v1: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
    private static let ed25519Identifier: [UInt8] = [0x2B, 0x65, 0x70]

    /// Parses a SubjectPublicKeyInfo (RFC 5280, section 4.1).
    init(subjectPublicKeyInfo bytes: [UInt8]) throws(JOSEError) {
        var outer = DERReader(bytes[...])
        guard let info = outer.read(DERReader.sequence), outer.isAtEnd else { throw Self.cut }
        var fields = DERReader(info)
        guard let identifier = fields.read(DERReader.sequence), let key = fields.readOctetBitString(),
            fields.isAtEnd
        else { throw Self.cut }
        var parts = DERReader(identifier)
        guard let algorithm = parts.read(DERReader.objectIdentifier) else { throw Self.cut }
        switch Array(algorithm) {
        case Self.rsaEncryption:
            // The parameter NULL is required (RFC 8017, appendix A.1), but some encoders omit it.
            guard parts.isAtEnd || parts.read(DERReader.null)?.isEmpty == true, parts.isAtEnd else {
                throw Self.cut
            }
            try self.init(pkcs1: key)
        case Self.ecPublicKey:
            guard let curve = parts.read(DERReader.objectIdentifier) else {
                throw JOSEError(.unsupportedKey, "an EC key must name its curve; use P-256")
            }
            guard Array(curve) == Self.prime256v1 else {
                throw JOSEError(.unsupportedKey, "an EC key on another curve than P-256")
            }
            guard parts.isAtEnd else { throw Self.cut }
            self = .p256(point: Array(key))
        case Self.ed25519Identifier:
            guard parts.isAtEnd else { throw Self.cut }
            self = .ed25519(Array(key))
        case Self.rsaPSS:
            throw JOSEError(
                .unsupportedKey, "an RSA key restricted to PSS; export it as an ordinary RSA public key")
        default:
            throw JOSEError(.unsupportedKey, "not an RSA, P-256 or Ed25519 key")
        }
    }

    /// Parses an RSAPublicKey (RFC 8017, appendix A.1.1).
    init(pkcs1 bytes: ArraySlice<UInt8>) throws(JOSEError) {
        var outer = DERReader(bytes)
        guard let sequence = outer.read(DERReader.sequence), outer.isAtEnd else { throw Self.cut }
        var numbers = DERReader(sequence)
        guard let modulus = numbers.readUnsigned(), let exponent = numbers.readUnsigned(), numbers.isAtEnd
        else { throw Self.cut }
        self = .rsa(modulus: modulus, exponent: exponent)
    }

    /// Takes the certificate's key. Does not check dates, issuer and signature: the operator trusts the key itself.
    init(certificate bytes: [UInt8]) throws(JOSEError) {
        guard let certificate = X509Certificate(bytes) else {
            throw JOSEError(.unreadableKey, "not an X.509 certificate, or it was truncated")
        }
        try self.init(subjectPublicKeyInfo: certificate.subjectPublicKeyInfo)
    }

    /// Returns P-256 material with the uncompressed point of `key`. Returns RSA and Ed25519 material unchanged.
    func uncompressed(_ key: EVPKey) -> KeyMaterial {
        guard case .p256 = self else { return self }
        return .p256(
            point: [4] + Self.coordinate(OSSL_PKEY_PARAM_EC_PUB_X, of: key)
                + Self.coordinate(OSSL_PKEY_PARAM_EC_PUB_Y, of: key))
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

    private static let cut = JOSEError(.unreadableKey, "not a DER public key, or it was truncated")

    func makeKey() throws(JOSEError) -> EVPKey {
        switch self {
        case .rsa(let modulus, let exponent):
            try Self.checkRSA(modulus: modulus, exponent: exponent)
            return try Self.makeRSA(modulus: modulus, exponent: exponent)
        case .p256(let point):
            return try Self.makeP256(point)
        case .ed25519(let bytes):
            guard Ed25519Point.isUsable(bytes) else {
                throw JOSEError(.invalidPoint, "not a point of Ed25519, or one of small order")
            }
            guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count) else {
                ERR_clear_error()
                throw JOSEError(.unreadableKey, "an Ed25519 key has 32 bytes")
            }
            return EVPKey(owning: key)
        }
    }

    /// Checks size, modulus and exponent (RFC 7518, section 3.3). The upper limits exclude keys that verify slowly.
    private static func checkRSA(modulus: [UInt8], exponent: [UInt8]) throws(JOSEError) {
        let bits = bitCount(modulus)
        guard bits >= 2048 else {
            throw JOSEError(.weakKey, "the RSA key has \(bits) bits; use at least 2048")
        }
        guard bits <= 8192 else {
            throw JOSEError(.weakKey, "the RSA key has \(bits) bits; use at most 8192")
        }
        guard let low = modulus.last, low & 1 == 1 else {
            throw JOSEError(.weakKey, "the RSA modulus is even, so this is not an RSA key")
        }
        guard let last = exponent.last, last & 1 == 1, bitCount(exponent) >= 2 else {
            throw JOSEError(.weakKey, "the RSA exponent must be odd and at least 3; use 65537")
        }
        guard bitCount(exponent) <= 64 else {
            throw JOSEError(.weakKey, "the RSA exponent is longer than 64 bits; use 65537")
        }
    }

    private static func bitCount(_ number: [UInt8]) -> Int {
        let significant = number.drop { $0 == 0 }
        guard let first = significant.first else { return 0 }
        return significant.count * 8 - first.leadingZeroBitCount
    }

    private static func makeP256(_ point: [UInt8]) throws(JOSEError) -> EVPKey {
        // Uncompressed or compressed. The hybrid and infinity forms are not allowed for keys (RFC 5480,
        // section 2.2). OpenSSL checks the length.
        guard [2, 3, 4].contains(point.first) else {
            throw JOSEError(.invalidPoint, "not a point of P-256")
        }
        let key = point.withUnsafeBytes { bytes in
            fromData("EC") { builder in
                OSSL_PARAM_BLD_push_utf8_string(builder, name("group"), name("prime256v1"), 0)
                OSSL_PARAM_BLD_push_octet_string(builder, name("pub"), bytes.baseAddress, bytes.count)
            }
        }
        guard let key else { throw JOSEError(.invalidPoint, "the point is not on P-256") }
        guard let check = EVP_PKEY_CTX_new(key.pointer, nil) else { preconditionFailure("out of memory") }
        defer { EVP_PKEY_CTX_free(check) }
        guard EVP_PKEY_public_check(check) == 1 else {
            ERR_clear_error()
            throw JOSEError(.invalidPoint, "the point is not on P-256")
        }
        return key
    }

    private static func makeRSA(modulus: [UInt8], exponent: [UInt8]) throws(JOSEError) -> EVPKey {
        guard let n = BN_bin2bn(modulus, Int32(modulus.count), nil),
            let e = BN_bin2bn(exponent, Int32(exponent.count), nil)
        else { preconditionFailure("out of memory") }
        defer {
            BN_free(n)
            BN_free(e)
        }
        let key = fromData("RSA") { builder in
            OSSL_PARAM_BLD_push_BN(builder, name("n"), n)
            OSSL_PARAM_BLD_push_BN(builder, name("e"), e)
        }
        guard let key else { throw JOSEError(.unreadableKey, "OpenSSL rejects the numbers of this key") }
        return key
    }

    /// A parameter name in static memory: OpenSSL keeps the pointer until the parameters are built.
    private static func name(_ name: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
    }

    /// Returns nil if OpenSSL rejects the parameters. The values that `push` adds must live until `fromData` returns.
    private static func fromData(_ type: String, _ push: (OpaquePointer) -> Void) -> EVPKey? {
        guard let builder = OSSL_PARAM_BLD_new(), let context = EVP_PKEY_CTX_new_from_name(nil, type, nil)
        else { preconditionFailure("out of memory") }
        defer {
            EVP_PKEY_CTX_free(context)
            OSSL_PARAM_BLD_free(builder)
            ERR_clear_error()
        }
        push(builder)
        let parameters = OSSL_PARAM_BLD_to_param(builder)
        defer { OSSL_PARAM_free(parameters) }
        var pointer: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1,
            EVP_PKEY_fromdata(context, &pointer, countersign_evp_pkey_public_key, parameters) == 1
        else { return nil }
        return pointer.map(EVPKey.init(owning:))
    }
}
