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
        // RFC 9068, section 2.1.
        header =
            JSONValue.object([
                "alg": .string(key.algorithm.rawValue), "kid": .string(id), "typ": "at+jwt",
            ]).bytes
        var prefix: [UInt8] = []
        Base64URL.encode(header, to: &prefix)
        prefix.append(UInt8(ascii: "."))
        tokenPrefix = prefix
    }

    /// An access token with these claims.
    package func sign(_ claims: [String: JSONValue]) throws(JOSEError) -> String {
        try key.sign(header: header, payload: JSONValue.object(claims).bytes)
    }
}
