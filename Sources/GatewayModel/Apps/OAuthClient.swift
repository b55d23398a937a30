package import CountersignCore

/// A program that gets its own tokens from the token service (RFC 6749, section 2): a backend, not a device.
public struct OAuthClient: Sendable, Identifiable {
    /// What a client may ask `/oauth/token` for.
    public enum Grant: String, Sendable, CaseIterable {
        /// Tokens that speak for the whole app (section 4.4).
        case clientCredentials = "client_credentials"
        /// New tokens for token families that were opened for this client (section 6).
        case refreshToken = "refresh_token"

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public init?(rawValue: String) {
            guard let found = Self.named(rawValue) else { return nil }
            self = found
        }
    }

    /// What the client calls itself (`client_id`).
    public let id: String
    /// The app that its tokens are for.
    public let appID: String
    /// What people call it.
    public let name: String
    /// What it may ask for.
    public let grants: Set<Grant>
    /// The key that verifies its assertions, as PEM or JWK; nil when it has a secret instead.
    public let publicKey: String?
    /// Milliseconds since 1970 when it was made.
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
    /// The client as the audit log and the admin API have it.
    package var json: JSONValue {
        [
            "client_id": .string(id), "app": .string(appID), "name": .string(name),
            "grants": .array(grants.map(\.rawValue).sorted().map { .string($0) }),
            "proof": .string(publicKey == nil ? "secret" : "key"),
            "created_ms": .integer(createdMilliseconds),
        ]
    }
}
