package import CountersignCore
package import CountersignJOSE

/// A key of the gateway's own that signs access tokens.
package final class IssuingKey: Sendable {
    /// What the command line says of one.
    package let id: String
    package let key: SigningKey
    /// Milliseconds since 1970 from which on it signs. It is published before, so that others know it by then.
    package let signsFromMilliseconds: Int64
    /// The first part of every token that it signs, with the dot.
    package let tokenPrefix: [UInt8]
    private let header: [UInt8]

    package init(_ key: SigningKey, signsFromMilliseconds: Int64) {
        id = key.publicKey.thumbprint
        self.key = key
        self.signsFromMilliseconds = signsFromMilliseconds
        header = Self.header(keyID: id)
        tokenPrefix = Self.tokenPrefix(of: header)
    }

    /// Whether a token begins as one does that some key of a gateway has signed, which may be gone by now.
    package static func mayHaveSigned(_ token: String) -> Bool {
        let start = token.utf8.prefix(anyPrefix.count)
        return start.count == anyPrefix.count
            && zip(start, anyPrefix).enumerated().allSatisfy { index, pair in
                // The characters of the key's id, and those that have bits of it.
                29..<87 ~= index || pair.0 == pair.1
            }
    }

    private static let anyPrefix = tokenPrefix(of: header(keyID: String(repeating: "x", count: 43)))

    // RFC 9068, section 2.1.
    private static func header(keyID: String) -> [UInt8] {
        JSONValue.object(["alg": "RS256", "kid": .string(keyID), "typ": "at+jwt"]).bytes
    }

    private static func tokenPrefix(of header: [UInt8]) -> [UInt8] {
        var prefix: [UInt8] = []
        Base64URL.encode(header, to: &prefix)
        return prefix + [UInt8(ascii: ".")]
    }

    /// An access token with these claims.
    package func sign(_ claims: JSONObject) throws(JOSEError) -> String {
        try key.sign(header: header, payload: JSONValue.object(claims).bytes)
    }
}
