internal import CountersignCore
internal import CountersignJOSE

/// A key of the gateway's own that signs access tokens.
final class IssuingKey: Sendable {
    /// What the command line says of one.
    package let id: String
    let key: SigningKey
    /// Milliseconds since 1970 from which on it signs. It is published before, so that others know it by then.
    let signsFromMilliseconds: Int64
    /// The first part of every token that it signs, with the dot.
    let tokenPrefix: [UInt8]
    private let header: [UInt8]

    init(_ key: SigningKey, signsFromMilliseconds: Int64) {
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
    func sign(_ claims: [String: JSONValue]) throws(JOSEError) -> String {
        try key.sign(header: header, payload: JSONValue.object(claims).bytes)
    }
}
