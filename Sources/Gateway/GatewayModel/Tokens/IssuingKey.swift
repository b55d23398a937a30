package import CountersignCore
internal import CountersignCrypto
package import CountersignJOSE

/// A key of the gateway that signs access tokens.
package final class IssuingKey: Sendable {
    package let id: String
    package let key: SigningKey
    /// The time from which the key signs. The key is published earlier, so that verifiers have it in time.
    package let signsFromMilliseconds: Int64
    /// The first part of every token signed with the key, including the dot.
    package let tokenPrefix: String
    private let header: [UInt8]

    package init(_ key: SigningKey, signsFromMilliseconds: Int64) {
        id = key.publicKey.thumbprint
        self.key = key
        self.signsFromMilliseconds = signsFromMilliseconds
        header = Self.header(keyID: id)
        tokenPrefix = Self.tokenPrefix(of: header)
    }

    /// Whether a token's header looks like a gateway's, so that a deleted key may have signed it.
    package static func mayHaveSigned(_ token: String) -> Bool {
        // Ignores the characters that encode the key's id.
        token.hasPrefix(anyStart) && token.utf8.dropFirst(87).starts(with: anyPrefix.utf8.dropFirst(87))
    }

    private static let anyPrefix = tokenPrefix(of: header(keyID: String(repeating: "x", count: 43)))
    private static let anyStart = String(anyPrefix.prefix(29))

    // RFC 9068, section 2.1.
    private static func header(keyID: String) -> [UInt8] {
        JSONValue.object(["alg": "RS256", "kid": .string(keyID), "typ": "at+jwt"]).bytes
    }

    private static func tokenPrefix(of header: [UInt8]) -> String { Base64URL.encode(header) + "." }

    package func sign(_ claims: JSONObject) throws(JOSEError) -> String {
        try key.sign(header: header, payload: JSONValue.object(claims).bytes)
    }
}
