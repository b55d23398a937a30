internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
public import GatewayModel
internal import GatewayStorage

/// The sessions and signing keys of a data directory, for operators. Any process may change them; a running gateway sees
/// it within a second.
public final class SessionDirectory: Sendable {
    /// What a new session begins with. Shown once: the directory keeps a hash.
    public struct Opened: Sendable {
        /// The session.
        public let session: Session
        /// What its client exchanges for its first access token.
        public let refreshToken: String
    }

    /// One line of the sessions' history.
    public struct AuditEntry: Sendable {
        /// Milliseconds since 1970.
        public let milliseconds: Int64
        /// The session.
        public let sessionID: String
        /// `opened`, `repeated` (a refresh token got the one that took its place again), `revoked_operator`,
        /// `revoked_client` or `revoked_reuse`.
        public let action: String
        /// Which of the session's refresh tokens was presented; nil where none was.
        public let generation: Int?
        /// Where the request came from; empty for an operator.
        public let address: String

        package init(
            milliseconds: Int64, sessionID: String, action: String, generation: Int?, address: String
        ) {
            self.milliseconds = milliseconds
            self.sessionID = sessionID
            self.action = action
            self.generation = generation
            self.address = address
        }
    }

    /// A key that signs access tokens.
    public struct SigningKeyInfo: Sendable {
        /// Its RFC 7638 thumbprint: what tokens name in `kid`.
        public let id: String
        /// Milliseconds since 1970 from which on it signs.
        public let signsFromMilliseconds: Int64
        /// True for the one that signs now.
        public let signs: Bool
    }

    private let apps: AppDirectory
    private let store: SessionStore
    private let secrets: TokenSecrets
    /// Milliseconds since 1970.
    private let clock: @Sendable () -> Int64

    /// Opens what there is, and makes it when it is not there.
    ///
    /// - Parameter dataDirectory: The gateway's data directory.
    /// - Throws: `dataDirectory` or `storage`.
    public convenience init(dataDirectory: String) throws(GatewayError) {
        try self.init(dataDirectory: dataDirectory, clock: { AppDirectory.now() })
    }

    /// The same with a clock of its own, in milliseconds since 1970.
    package init(dataDirectory: String, clock: @escaping @Sendable () -> Int64) throws(GatewayError) {
        self.clock = clock
        apps = try AppDirectory(dataDirectory: dataDirectory)
        let folder = try DataDirectory(path: dataDirectory)
        store = try SessionStore(dataDirectory: folder)
        secrets = try TokenSecrets(dataDirectory: folder)
    }

    /// Opens a session for a user.
    ///
    /// - Parameters:
    ///   - subject: The user: 1 to 512 bytes without control characters, not beginning with `device:`.
    ///   - appID: The app.
    ///   - clientID: The client that alone may use it; nil for a device.
    /// - Returns: The session and its refresh token.
    /// - Throws: `invalid`, `notFound`, `storage`.
    public func open(
        for subject: String, of appID: String, clientID: String? = nil
    ) throws(GatewayError) -> Opened {
        let rules = try apps.tokenRules(of: appID)
        guard (1...EventIdentifier.longest).contains(subject.utf8.count), !subject.hasPrefix("device:"),
            subject.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else {
            throw GatewayError(
                .invalid,
                "a user id has 1 to \(EventIdentifier.longest) bytes and does not begin with device:")
        }
        if let clientID {
            guard let client = try apps.clients(of: appID).first(where: { $0.id == clientID }) else {
                throw GatewayError(.notFound, "the app \(appID) has no client \(clientID)")
            }
            guard client.grants.contains(.refreshToken) else {
                throw GatewayError(.invalid, "the client \(clientID) may not use refresh tokens")
            }
        }
        let key = try secrets.refreshKey()
        let now = clock()
        let (session, token) = try store.perform { sqlite in
            try SessionLedger(connection: sqlite, key: key).open(
                .init(appID: appID, subject: subject, clientID: clientID, rules: rules),
                at: now, address: "")
        }
        return Opened(session: session, refreshToken: token.text)
    }

    /// An app's sessions, the one opened last first.
    ///
    /// - Parameters:
    ///   - appID: The app.
    ///   - subject: Whose; nil lists those of all.
    ///   - last: When the last one of the page before was opened, and its id; nil begins with the newest.
    ///   - limit: The most to list.
    /// - Returns: Those that are over too, for 30 days after they would have expired.
    /// - Throws: `notFound`, `storage`.
    public func sessions(
        of appID: String, subject: String? = nil, before last: (milliseconds: Int64, id: String)? = nil,
        limit: Int = 1_000
    ) throws(GatewayError) -> [Session] {
        let app = try apps.app(id: appID)
        return try ledger { try $0.sessions(of: app.id, subject: subject, before: last, limit: limit) }
    }

    /// Calls back with the users who have sessions in an app, after a given one, each once and in order, until it answers true.
    package func subjects(
        of appID: String, after last: String, _ isEnough: (String) -> Bool
    ) throws(GatewayError) {
        let key = try secrets.refreshKey()
        var last = last
        // A page at a time: others wait for the same connection.
        while true {
            let from = last
            let page = try store.perform {
                try SessionLedger(connection: $0, key: key).subjects(of: appID, after: from, limit: 1_000)
            }
            for subject in page where isEnough(subject) { return }
            guard let end = page.last else { return }
            last = end
        }
    }

    /// The session with this id, or nil.
    package func session(id: String) throws(GatewayError) -> Session? {
        try ledger { try $0.session(id: id) }
    }

    /// Ends a session: its refresh token and its access tokens are refused from then on.
    ///
    /// - Throws: `notFound` when there is none or it was ended before, `storage`.
    public func revoke(id: String) throws(GatewayError) {
        let now = clock()
        guard try ledger({ try $0.end(id: id, .operator, "", at: now) }) != nil else {
            throw GatewayError(.notFound, "there is no session \(id) that could be ended")
        }
    }

    /// Ends all sessions of a user or device.
    ///
    /// - Returns: How many were ended.
    /// - Throws: `notFound`, `storage`.
    public func revokeAll(of subject: String, in appID: String) throws(GatewayError) -> Int {
        let app = try apps.app(id: appID)
        let now = clock()
        return try ledger { ledger in
            try ledger.sessions(of: app.id, subject: subject, limit: Int(Int32.max)).filter {
                try ledger.end(id: $0.id, .operator, "", at: now) != nil
            }.count
        }
    }

    /// What happened to an app's sessions, the newest first.
    ///
    /// - Throws: `notFound`, `storage`.
    public func audit(of appID: String, limit: Int = 1_000) throws(GatewayError) -> [AuditEntry] {
        let app = try apps.app(id: appID)
        return try ledger { try $0.audit(of: app.id, limit: limit) }
    }

    /// The keys that verify access tokens, the one that signs last first.
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

    /// Makes a new signing key.
    ///
    /// - Parameter endsOthers: False: it signs in an hour, and the tokens of the others stay good. True, for when a key is
    ///   in wrong hands: it signs at once, and no token of the others is good any more.
    /// - Returns: The key.
    /// - Throws: `storage`.
    public func rotateSigningKey(endsOthers: Bool = false) throws(GatewayError) -> SigningKeyInfo {
        let now = clock()
        let key = try secrets.rotate(
            signsFrom: endsOthers ? now : now + TokenSecrets.leadMilliseconds, endsOthers: endsOthers)
        return SigningKeyInfo(
            id: key.id, signsFromMilliseconds: key.signsFromMilliseconds, signs: endsOthers)
    }

    private func ledger<Value: Sendable>(
        _ body: @escaping @Sendable (SessionLedger) throws -> Value
    ) throws(GatewayError) -> Value {
        let key = try secrets.refreshKey()
        return try store.perform { try body(SessionLedger(connection: $0, key: key)) }
    }
}
