package import CountersignCore

/// An OAuth client of the token service (RFC 6749, section 2), such as a backend.
public struct OAuthClient: Sendable, Identifiable {
    /// A grant type of `/oauth/token`.
    public enum Grant: String, Sendable, CaseIterable {
        /// Tokens for the whole app (RFC 6749, section 4.4).
        case clientCredentials = "client_credentials"
        /// New tokens for token families that were opened for this client (RFC 6749, section 6).
        case refreshToken = "refresh_token"

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public init?(rawValue: String) {
            guard let found = Self.named(rawValue) else { return nil }
            self = found
        }
    }

    /// The `client_id`.
    public let id: String
    /// The app that the tokens are for.
    public let appID: String
    /// The display name.
    public let name: String
    /// The grant types the client may use.
    public let grants: Set<Grant>
    /// The key that verifies the client's assertions, as PEM or JWK; nil for a client with a secret.
    public let publicKey: String?
    /// Creation time, in milliseconds since 1970.
    public let createdMilliseconds: Int64

    package let secretHash: [UInt8]?

    package init(
        id: String, appID: String, name: String, grants: Set<Grant>, publicKey: String?,
        createdMilliseconds: Int64, secretHash: [UInt8]?
    ) {
        self.id = id
        self.appID = appID
        self.name = name
        self.grants = grants
        self.publicKey = publicKey
        self.createdMilliseconds = createdMilliseconds
        self.secretHash = secretHash
    }
}

extension OAuthClient {
    package var json: JSONValue {
        [
            "client_id": .string(id), "app": .string(appID), "name": .string(name),
            "grants": .array(grants.map(\.rawValue).sorted().map { .string($0) }),
            "proof": .string(publicKey == nil ? "secret" : "key"),
            "created_ms": .integer(createdMilliseconds),
        ]
    }
}
