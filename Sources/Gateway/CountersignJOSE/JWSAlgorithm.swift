internal import CountersignCore

/// A signature algorithm by its registered name (RFC 7518, section 3.1; RFC 8037; RFC 9864).
///
/// The names are case-sensitive. `none` and HMAC are not included: a shared secret does not identify the
/// signer (RFC 8725, section 3.2).
public struct JWSAlgorithm: RawRepresentable, Sendable {
    /// The value of `alg`, such as `RS256`.
    public let rawValue: String

    /// Creates an algorithm with any name. A name that is not in ``all`` verifies nothing.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// RSASSA-PKCS1-v1_5 with SHA-256.
    public static let rs256 = JWSAlgorithm(rawValue: "RS256")
    /// RSASSA-PSS with SHA-256, MGF1 with SHA-256 and a salt of 32 bytes.
    public static let ps256 = JWSAlgorithm(rawValue: "PS256")
    /// ECDSA on P-256 with SHA-256; the signature is r and s of 32 bytes each.
    public static let es256 = JWSAlgorithm(rawValue: "ES256")
    /// EdDSA, always with Ed25519 (RFC 8037).
    public static let edDSA = JWSAlgorithm(rawValue: "EdDSA")
    /// The same signature as ``edDSA`` under its fully specified name (RFC 9864).
    public static let ed25519 = JWSAlgorithm(rawValue: "Ed25519")

    /// The supported algorithms.
    public static let all: [JWSAlgorithm] = [.rs256, .ps256, .es256, .edDSA, .ed25519]

    var scheme: SignatureScheme? {
        switch Array(rawValue.utf8) {
        case Array("RS256".utf8): .rsaPKCS1
        case Array("PS256".utf8): .rsaPSS
        case Array("ES256".utf8): .ecdsaP256
        case Array("EdDSA".utf8), Array("Ed25519".utf8): .ed25519
        default: nil
        }
    }
}

extension JWSAlgorithm: Hashable {
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func == (left: JWSAlgorithm, right: JWSAlgorithm) -> Bool {
        left.rawValue.hasSameBytes(as: right.rawValue)
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func hash(into hasher: inout Hasher) {
        hasher.combine(rawValue)
    }
}

enum SignatureScheme: Sendable, Hashable, CaseIterable {
    case rsaPKCS1, rsaPSS, ecdsaP256, ed25519
}
