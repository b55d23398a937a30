internal import CountersignCore
internal import Foundation
public import GatewayModel
package import GatewayStorage

/// The token families and signing keys of a data directory, for operators. Any process may change them. A
/// running gateway applies a change within a second.
public final class TokenFamilyDirectory: Sendable {
    /// A new token family and its first refresh token. The directory stores only a hash of the token.
    public struct Opened: Sendable {
        /// The token family.
        public let family: TokenFamily
        /// The refresh token that the client exchanges for its first access token.
        public let refreshToken: String
    }

    /// A key that signs access tokens.
    public struct SigningKeyInfo: Sendable {
        /// The key's RFC 7638 thumbprint, which is the `kid` of its tokens.
        public let id: String
        /// The time from which the key signs, in milliseconds since 1970.
        public let signsFromMilliseconds: Int64
        /// Whether this key signs now.
        public let signs: Bool
    }

    private let apps: AppDirectory
    private let store: TokenFamilyStore
    private let secrets: TokenSecrets
    /// Milliseconds since 1970.
    private let clock: @Sendable () -> Int64

    /// Opens or creates the directory's token store.
    ///
    /// - Parameter dataDirectory: The gateway's data directory.
    /// - Throws: `dataDirectory` or `storage`.
    public convenience init(dataDirectory: String) throws(GatewayError) {
        let storage = try SQLiteStorage(dataDirectory: dataDirectory)
        try self.init(
            storage: storage, apps: try storage.openControl(as: .account),
            clock: { Milliseconds(Date()).count })
    }

    package init(
        storage: any Storage, apps: AppDirectory, clock: @escaping @Sendable () -> Int64
    ) throws(GatewayError) {
        self.clock = clock
        self.apps = apps
        secrets = try storage.openSecrets()
        store = try storage.openTokenFamilies(refreshKey: try secrets.refreshKey())
    }

    /// Opens a token family for a user.
    ///
    /// - Parameters:
    ///   - subject: The user: 1 to 512 bytes without control characters, not beginning with `device:`.
    ///   - appID: The app.
    ///   - clientID: The only client that may use the refresh token; nil for a device.
    /// - Returns: The token family and its refresh token.
    /// - Throws: `invalid`, `notFound`, `storage`.
    public func open(
        for subject: String, of appID: String, clientID: String? = nil
    ) throws(GatewayError) -> Opened {
        let rules = try apps.tokenRules(of: appID)
        guard (1...EventIdentifier.longest).contains(subject.utf8.count), !subject.hasPrefix("device:"),
            !subject.hasControlCharacter
        else {
            throw GatewayError(
                .invalid,
                "a user id has 1 to \(EventIdentifier.longest) bytes without control characters and does not begin with "
                    + "device:")
        }
        if let clientID {
            guard let client = try apps.clients.all(of: appID).first(where: { $0.id == clientID }) else {
                throw GatewayError(.notFound, "the app \(appID) has no client \(clientID)")
            }
            guard client.grants.contains(.refreshToken) else {
                throw GatewayError(.invalid, "the client \(clientID) may not use refresh tokens")
            }
        }
        let now = clock()
        let (family, token) = try store.perform { table in
            try table.open(
                .init(appID: appID, subject: subject, clientID: clientID, rules: rules),
                at: now)
        }
        return Opened(family: family, refreshToken: token.text)
    }

    /// The token families of an app, newest first.
    ///
    /// - Parameters:
    ///   - appID: The app.
    ///   - subject: The user or device; nil for all.
    ///   - last: The opening time and id of the last family of the previous page; nil starts with the newest.
    ///   - limit: The maximum number of results.
    /// - Returns: Token families, including ended ones until 30 days after they would have expired.
    /// - Throws: `notFound`, `storage`.
    public func families(
        of appID: String, subject: String? = nil, before last: (milliseconds: Int64, id: String)? = nil,
        limit: Int = 1_000
    ) throws(GatewayError) -> [TokenFamily] {
        let app = try apps.app(id: appID)
        return try store.perform { try $0.families(of: app.id, subject: subject, before: last, limit: limit) }
    }

    /// Calls `isEnough` with each token family's subject that sorts after `last`, in order, until it returns true.
    package func subjects(
        of appID: String, after last: String, _ isEnough: (String) -> Bool
    ) throws(GatewayError) {
        var last = last
        // In pages, because other work waits for the same connection.
        while true {
            let from = last
            let page = try store.perform { try $0.subjects(of: appID, after: from, limit: 1_000) }
            for subject in page where isEnough(subject) { return }
            guard let end = page.last else { return }
            last = end
        }
    }

    package func family(id: String) throws(GatewayError) -> TokenFamily? {
        try store.perform { try $0.family(id: id) }
    }

    /// Ends a token family. Its refresh token and access tokens are rejected from then on.
    ///
    /// - Throws: `notFound` if the family does not exist or was already revoked, `storage`.
    public func revoke(id: String) throws(GatewayError) {
        let now = clock()
        guard try store.perform({ try $0.end(id: id, .operator, at: now) }) != nil else {
            throw GatewayError(.notFound, "there is no open session \(id)")
        }
    }

    /// Ends all token families of a user or device.
    ///
    /// - Returns: The number of ended families.
    /// - Throws: `notFound`, `storage`.
    public func revokeAll(of subject: String, in appID: String) throws(GatewayError) -> Int {
        let app = try apps.app(id: appID)
        let now = clock()
        return try store.perform { table in
            try table.families(of: app.id, subject: subject, limit: Int(Int32.max)).filter {
                try table.end(id: $0.id, .operator, at: now) != nil
            }.count
        }
    }

    /// Ends all token families of a user and deletes their rows, which name the user. The families' access tokens
    /// are revoked. Returns the number of families that were active.
    package func forget(_ subject: String, in appID: String) throws(GatewayError) -> Int {
        let now = clock()
        return try store.perform { try $0.deleteFamilies(of: subject, in: appID, at: now) }
    }

    /// The keys that verify access tokens, newest first.
    ///
    /// - Throws: `storage`.
    public func signingKeys() throws(GatewayError) -> [SigningKeyInfo] {
        let now = clock()
        let keys = try secrets.published(at: now)
        let signing = keys.filter { $0.signsFromMilliseconds <= now }.max {
            $0.signsFromMilliseconds < $1.signsFromMilliseconds
        }
        return keys.map {
            SigningKeyInfo(
                id: $0.id, signsFromMilliseconds: $0.signsFromMilliseconds, signs: $0.id == signing?.id)
        }
    }

    /// Creates a signing key.
    ///
    /// - Parameter endsOthers: If false, the key signs after one hour, and tokens of other keys remain valid.
    ///   If true, for a compromised key, the new key signs at once, and tokens of all other keys become invalid.
    /// - Returns: The new key.
    /// - Throws: `storage`.
    public func rotateSigningKey(endsOthers: Bool = false) throws(GatewayError) -> SigningKeyInfo {
        let now = clock()
        let key = try secrets.rotate(
            signsFrom: endsOthers ? now : now + TokenSecrets.leadMilliseconds, endsOthers: endsOthers)
        return SigningKeyInfo(
            id: key.id, signsFromMilliseconds: key.signsFromMilliseconds, signs: endsOthers)
    }
}
