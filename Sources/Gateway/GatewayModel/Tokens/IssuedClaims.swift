internal import CountersignJOSE
internal import CountersignJSON

/// The claims of an access token of the gateway (RFC 9068, section 2.2).
package struct IssuedClaims: Sendable {
    package let audience: String
    package let subject: String
    package let clientID: String
    package let tokenID: String
    /// `sid`; nil for a token of an OAuth client without a user.
    package let familyID: String?
    /// `exp`, in seconds since 1970.
    package let expiresAt: Int64

    package init?(json: [UInt8]) {
        let claims = try? StrictJSONParser(maximumBytes: CompactJWS.maximumBytes).parse(bytes: json) { root in
            (
                root["aud"]?.string, root["sub"]?.string, root["jti"]?.string, root["sid"]?.string,
                root["exp"]?.int64, root["client_id"]?.string
            )
        }
        guard let claims, let audience = claims.0, let subject = claims.1, let tokenID = claims.2,
            let expiresAt = claims.4, let clientID = claims.5
        else { return nil }
        self.audience = audience
        self.subject = subject
        self.tokenID = tokenID
        familyID = claims.3
        self.expiresAt = expiresAt
        self.clientID = clientID
    }
}
