internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON

/// The public keys in a text from the clipboard or a file: PEM, a certificate, a JWK or a JWK Set.
package struct PastedKeys: Sendable {
    package enum Source: String, Sendable, TextEnum {
        case pem, jwk, jwks, certificate
    }

    package struct Item: Sendable {
        package let key: PublicKey
        package let source: Source
        /// The end of a certificate's validity in seconds since 1970; nil for other formats.
        package let expiresAt: Double?
    }

    package var items: [Item] = []
    package var problems: [String] = []

    /// Parses all keys. Throws ``JOSEError`` for a private key, an unusable PEM block, or a text without usable keys.
    package init(text: String) throws(JOSEError) {
        let first = text.utf8.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
        if first == UInt8(ascii: "{") {
            try read(json: text)
        } else {
            try read(pem: text)
        }
        guard items.isEmpty else { return }
        throw JOSEError(.unreadableKey, problems.first ?? "the text contains no public key")
    }

    private mutating func read(json: String) throws(JOSEError) {
        let isSet =
            (try? StrictJSONParser(maximumBytes: 262_144, maximumDepth: 16)
                .parse(bytes: Array(json.utf8)) { $0["keys"] != nil && $0["kty"] == nil }) ?? false
        guard isSet else {
            items.append(Item(key: try PublicKey(jwk: json), source: .jwk, expiresAt: nil))
            return
        }
        for member in try JWKSet(json: json).members {
            if let key = member.key {
                items.append(Item(key: key, source: .jwks, expiresAt: nil))
            } else if let problem = member.problem {
                problems.append(problem.reason)
            }
        }
    }

    private mutating func read(pem: String) throws(JOSEError) {
        let blocks = try PEMBlock.parse(pem)
        if blocks.contains(where: { $0.label.contains("PRIVATE KEY") }) { throw PublicKey.privateKeyGiven }
        guard !blocks.isEmpty else {
            throw JOSEError(
                .unreadableKey,
                "no PEM block: the text must begin with -----BEGIN PUBLIC KEY-----, or be a JWK")
        }
        guard blocks.count <= 64 else { throw JOSEError(.tooManyKeys, "more than 64 keys") }
        for block in blocks {
            let key = try PublicKey(pem: PEMBlock.write(block.label, block.bytes))
            let isCertificate = block.label == "CERTIFICATE"
            items.append(
                Item(
                    key: key, source: isCertificate ? .certificate : .pem,
                    expiresAt: isCertificate ? X509Certificate(block.bytes)?.expiresAt : nil))
        }
    }
}

extension PublicKey {
    /// The JWK curve: `P-256` or `Ed25519`; nil for RSA.
    package var curve: String? {
        switch keyType {
        case "EC": "P-256"
        case "OKP": "Ed25519"
        default: nil
        }
    }
}
