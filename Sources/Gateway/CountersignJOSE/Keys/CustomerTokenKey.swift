public import CountersignCore
internal import CountersignCrypto

/// A private key of a Bloomreach project, with which a backend signs customer tokens. Descriptions omit the
/// secret.
public struct CustomerTokenKey: Sendable {
    /// The value of the header's `kid`.
    public let id: String

    package let secret: [UInt8]

    /// Creates a key from the text that the gateway or the vendor shows.
    ///
    /// - Parameters:
    ///   - id: The key's id; becomes `kid`.
    ///   - secret: The secret as text, used by its UTF-8 bytes and not decoded; 32 bytes or more.
    /// - Throws: ``JOSEError`` with code `weakKey` for a shorter secret (RFC 7518, section 3.2).
    public init(id: String, secret: String) throws(JOSEError) {
        guard secret.utf8.count >= 32 else {
            throw JOSEError(.weakKey, "a secret for HS256 must have at least 32 bytes")
        }
        self.id = id
        self.secret = Array(secret.utf8)
    }

    package init(id: String, secret: [UInt8]) {
        self.id = id
        self.secret = secret
    }

    /// Signs a token for a customer with HS256.
    ///
    /// - Parameters:
    ///   - customerIDs: The ids by name for which the token is valid, such as `["registered": "ada"]`. They
    ///     become `sub`.
    ///   - claims: Further claims, which must include `exp` in seconds since 1970. A `sub` is replaced.
    /// - Returns: Header, claims and signature in base64url, joined by dots.
    public func sign(customerIDs: [String: String], claims: JSONObject) -> String {
        let header = JSONValue.object(["alg": "HS256", "typ": "JWT", "kid": .string(id)])
        var claims = claims
        claims["sub"] = .object(JSONObject(customerIDs.mapValues { .string($0) }))
        var token: [UInt8] = []
        Base64URL.encode(header.bytes, to: &token)
        token.append(UInt8(ascii: "."))
        Base64URL.encode(JSONValue.object(claims).bytes, to: &token)
        let code = HMACSHA256.authenticate(token, key: secret)
        token.append(UInt8(ascii: "."))
        Base64URL.encode(code, to: &token)
        return String(decoding: token, as: UTF8.self)
    }
}

extension CustomerTokenKey: CustomStringConvertible, CustomReflectable {
    /// The id without the secret. Safe to log.
    public var description: String { "CustomerTokenKey(\(id))" }
    /// The id without the secret, for `dump`.
    public var customMirror: Mirror { Mirror(self, children: ["id": id]) }
}
