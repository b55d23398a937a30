package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// The rules by which sessions are opened, exchanged and ended. Works inside one transaction of ``SessionStore``.
///
/// A refresh token is exchanged for its child. The client may never see the answer, and two of its processes may refresh
/// at once, so the direct parent of the active token gets the active one again until that one is exchanged, or the reuse
/// window is over. Any other token that was replaced is a copy in somebody else's hands: the session ends (RFC 9700,
/// section 4.14.2; see `docs/adr/0015-reuse-of-refresh-tokens.md`).
package struct SessionTable {
    let connection: any SQLConnection
    /// Derives refresh tokens; see ``RefreshToken``.
    let key: [UInt8]
    /// What counts instead of the times that callers give: their clocks may differ by more than the reuse window. Milliseconds
    /// since 1970; nil when one program has the sessions alone.
    let databaseTime: Int64?

    /// What a session is opened with.
    package struct Opening: Sendable {
        package var appID: String
        package var subject: String
        package var clientID: String?
        package var scope = TokenScope.all
        package var rules: TokenRules

        package init(
            appID: String, subject: String, clientID: String? = nil, scope: String = TokenScope.all,
            rules: TokenRules
        ) {
            self.appID = appID
            self.subject = subject
            self.clientID = clientID
            self.scope = scope
            self.rules = rules
        }
    }

    /// Who presents a refresh token, and when.
    package struct Presentation: Sendable {
        /// The client that has proved itself; nil when none has.
        package var clientID: String?
        /// The app whose devices ask, when the request says so.
        package var publicClientID: String?
        /// Milliseconds since 1970.
        package var now: Int64
        /// The rules of the session's app; nil when there is no such app any more.
        package var rules: @Sendable (_ appID: String) -> TokenRules?
        /// What is asked for; nil asks for all that the session has.
        package var scope: String?
        /// What the client has proved itself by, when it may be used once only.
        package var assertion: SpentAssertion?

        package init(
            clientID: String? = nil, publicClientID: String? = nil, now: Int64,
            rules: @escaping @Sendable (_ appID: String) -> TokenRules?, scope: String? = nil,
            assertion: SpentAssertion? = nil
        ) {
            self.clientID = clientID
            self.publicClientID = publicClientID
            self.now = now
            self.rules = rules
            self.scope = scope
            self.assertion = assertion
        }
    }

    package enum Exchange: Sendable {
        /// The active token, and the session that it belongs to.
        case granted(Session, RefreshToken)
        case refused(Refusal)
    }

    package enum Refusal: Sendable, Equatable {
        /// There is no such session, token or app.
        case unknown
        case expired
        case revoked
        /// It was opened for another client.
        case otherClient
        /// The token had been replaced; the session was ended.
        case reused(sessionID: String, appID: String)
        /// The client's assertion was used before.
        case replayed
        /// More is asked for than the session has.
        case scope
    }

    /// Opens a session.
    package func open(_ opening: Opening, at now: Int64) throws -> (Session, RefreshToken) {
        let now = time(now)
        let token = RefreshToken(session: .random(count: RefreshToken.sessionBytes), key: key)
        let session = Session(
            id: token.sessionID, appID: opening.appID, subject: opening.subject, clientID: opening.clientID,
            scope: opening.scope, generation: 0, createdMilliseconds: now, usedMilliseconds: now,
            expiresMilliseconds: opening.rules.expiry(of: now, usedAt: now),
            lifetimeFromMilliseconds: now, revokedMilliseconds: nil, revocation: nil)
        try connection.run(
            """
            INSERT INTO session (id, app_id, subject, client_id, scope, generation, created_ms, used_ms,
                expires_ms, lifetime_from_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7, ?6)
            """, .text(session.id), .text(session.appID), .text(session.subject),
            .optionalText(session.clientID), .text(session.scope), .integer(now),
            .integer(session.expiresMilliseconds))
        try connection.run(
            "INSERT INTO refresh_token (session_id, generation, hash) VALUES (?, 0, ?)", .text(session.id),
            .blob(token.hash))
        return (session, token)
    }

    /// Exchanges a refresh token that we made.
    package func exchange(_ token: RefreshToken, _ presentation: Presentation) throws -> Exchange {
        let now = time(presentation.now)
        if let assertion = presentation.assertion, try !spend(assertion) { return .refused(.replayed) }
        guard let session = try session(id: token.sessionID, forUpdate: true),
            let rules = presentation.rules(session.appID)
        else { return .refused(.unknown) }
        guard session.clientID == presentation.clientID,
            presentation.publicClientID == nil || presentation.publicClientID == session.appID
        else { return .refused(.otherClient) }
        guard session.revokedMilliseconds == nil else { return .refused(.revoked) }
        let lifetimeFrom = session.lifetimeFromMilliseconds
        // The rules may have become stricter since the session's expiry was written.
        guard session.isActive(atMilliseconds: now), now < rules.end(of: lifetimeFrom) else {
            return .refused(.expired)
        }
        if let scope = presentation.scope, !TokenScope.contains(session.scope, scope) {
            return .refused(.scope)
        }
        let presented = Int(token.generation)
        guard presented <= session.generation else { return .refused(.unknown) }
        let record = try record(session.id, presented).flatMap { $0.hash == token.hash ? $0 : nil }
        if presented == session.generation {
            guard record != nil else { return .refused(.unknown) }
            return try rotate(
                session, token, expires: rules.expiry(of: lifetimeFrom, usedAt: now), at: now)
        }
        let reuse = Milliseconds(seconds: rules.reuseSeconds).count
        if presented == session.generation - 1, let exchanged = record?.exchangedMilliseconds,
            !DueTime.hasCome(exchanged + reuse, at: now, within: reuse),
            let child = try activeChild(of: token, in: session)
        {
            return .granted(session, child)
        }
        try end(session, .reuse, at: now)
        return .refused(.reused(sessionID: session.id, appID: session.appID))
    }

    private func rotate(
        _ session: Session, _ token: RefreshToken, expires: Int64, at now: Int64
    ) throws -> Exchange {
        let nonce = [UInt8].random(count: RefreshToken.nonceBytes)
        let child = token.child(nonce: nonce, key: key)
        let generation = Int64(child.generation)
        try connection.run(
            "UPDATE refresh_token SET exchanged_ms = ?3 WHERE session_id = ?1 AND generation = ?2",
            .text(session.id), .integer(generation - 1), .integer(now))
        try connection.run(
            "INSERT INTO refresh_token (session_id, generation, hash, nonce) VALUES (?, ?, ?, ?)",
            .text(session.id), .integer(generation), .blob(child.hash), .blob(nonce))
        // What is too old to be answered is not needed to be recognized: the token itself says what it is.
        try connection.run(
            "DELETE FROM refresh_token WHERE session_id = ?1 AND generation < ?2", .text(session.id),
            .integer(generation - 1))
        try connection.run(
            "UPDATE session SET generation = ?2, used_ms = ?3, expires_ms = ?4 WHERE id = ?1",
            .text(session.id), .integer(generation), .integer(now), .integer(expires))
        return .granted(session, child)
    }

    /// The active token, derived from its parent; nil when it is not a child of it.
    private func activeChild(of parent: RefreshToken, in session: Session) throws -> RefreshToken? {
        guard let active = try record(session.id, session.generation), let nonce = active.nonce else {
            return nil
        }
        let child = parent.child(nonce: nonce, key: key)
        return child.hash == active.hash ? child : nil
    }

    /// Notes that an assertion was used; false when it had been before.
    package func spend(_ assertion: SpentAssertion) throws -> Bool {
        try connection.run(
            "INSERT INTO used_assertion (client_id, id, expires_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            .text(assertion.clientID),
            .text(assertion.id), .integer(assertion.expiresMilliseconds))
        return connection.changes > 0
    }

    package enum Revocation: Sendable {
        /// The session or the access token with this id.
        case revoked(String)
        /// There was nothing to revoke.
        case nothing
        case refused(Refusal)
    }

    /// Ends the session of a refresh token, whichever of its tokens it is.
    package func revoke(
        _ token: RefreshToken, clientID: String?, publicClientID: String?, at now: Int64
    ) throws -> Revocation {
        let now = time(now)
        guard let session = try session(id: token.sessionID, forUpdate: true),
            session.revokedMilliseconds == nil
        else {
            return .nothing
        }
        guard session.clientID == clientID, publicClientID == nil || publicClientID == session.appID else {
            return .refused(.otherClient)
        }
        try end(session, .client, at: now)
        return .revoked(session.id)
    }

    /// Revokes an access token; its session goes on.
    package func revoke(_ claims: IssuedClaims, clientID: String?, publicClientID: String?) throws
        -> Revocation
    {
        let isOwner =
            clientID.map { $0 == claims.clientID }
            ?? (claims.clientID == claims.audience
                && (publicClientID == nil || publicClientID == claims.audience))
        guard isOwner else { return .refused(.otherClient) }
        try connection.run(
            "INSERT INTO revoked_access_token (id, expires_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
            .text(claims.tokenID),
            .integer(Milliseconds(seconds: claims.expiresAt).count))
        return .revoked(claims.tokenID)
    }

    /// Deletes some of the expired rows. Returns true when none is left. Ignores sudden clock jumps, because a deleted
    /// revocation would become valid again when the clock is corrected.
    package func prune(at now: Int64, by clock: Lock<RetentionClock>) throws -> Bool {
        let now = clock.withLock { $0.time(time(now)) }
        let limit = now - Self.doubtedMilliseconds
        let tables: [(name: String, key: String, before: Int64)] = [
            ("used_assertion", "client_id, id", limit), ("revoked_access_token", "id", limit),
            ("session", "id", now - Self.keptMilliseconds),
        ]
        var isDone = true
        for table in tables {
            try connection.run(
                """
                DELETE FROM \(table.name) WHERE (\(table.key)) IN (
                    SELECT \(table.key) FROM \(table.name) WHERE expires_ms < ?1 LIMIT ?2)
                """, .integer(table.before), .integer(Int64(Self.prunedRows)))
            if connection.changes >= Self.prunedRows { isDone = false }
        }
        return isDone
    }

    /// Maximum rows of a table deleted by one call of ``prune(at:by:)``.
    static let prunedRows = 500
    /// By so much the clock may be ahead without being doubted.
    private static let doubtedMilliseconds: Int64 = 86_400_000
    /// How long a session that has expired can still be listed.
    private static let keptMilliseconds: Int64 = 30 * 86_400_000

    /// Ends a session; nothing happens to one that is over. Returns the session as it was, or nil when there is none or
    /// it was ended before.
    @discardableResult
    package func end(id: String, _ reason: Session.Revocation, at now: Int64) throws -> Session? {
        let now = time(now)
        guard let session = try session(id: id, forUpdate: true), session.revokedMilliseconds == nil else {
            return nil
        }
        try end(session, reason, at: now)
        return session
    }

    private func end(_ session: Session, _ reason: Session.Revocation, at now: Int64) throws {
        try connection.run(
            "UPDATE session SET revoked_ms = ?2, revocation = ?3 WHERE id = ?1", .text(session.id),
            .integer(now), .text(reason.rawValue))
    }

    private func time(_ own: Int64) -> Int64 { databaseTime ?? own }

    // MARK: Rows

    private struct Record {
        let hash: [UInt8]
        let nonce: [UInt8]?
        let exchangedMilliseconds: Int64?
    }

    private func record(_ sessionID: String, _ generation: Int) throws -> Record? {
        try connection.first(
            "SELECT hash, nonce, exchanged_ms FROM refresh_token WHERE session_id = ? AND generation = ?",
            .text(sessionID), .integer(Int64(generation))
        ) { row in
            Record(
                hash: row.blob(0), nonce: row.isNull(1) ? nil : row.blob(1),
                exchangedMilliseconds: row.optionalInt64(2))
        }
    }

    /// The session with this id, or nil. Nobody else changes it until the end of the transaction when it is `forUpdate`.
    package func session(id: String, forUpdate: Bool = false) throws -> Session? {
        try connection.first(
            "SELECT \(Self.columns) FROM session WHERE id = ?\(forUpdate ? connection.forUpdate : "")",
            .text(id),
            row: Self.session)
    }

    /// An app's sessions, the one opened last first, after `last`; at most `limit`.
    package func sessions(
        of appID: String, subject: String?, before last: (milliseconds: Int64, id: String)? = nil, limit: Int
    ) throws -> [Session] {
        try connection.all(
            """
            SELECT \(Self.columns) FROM session
            WHERE app_id = ?1 AND (subject = ?2 OR ?2 IS NULL) AND (created_ms, id) < (?4, ?5)
            ORDER BY created_ms DESC, id DESC LIMIT ?3
            """, .text(appID), .optionalText(subject), .integer(Int64(limit)),
            .integer(last?.milliseconds ?? .max), .text(last?.id ?? ""), row: Self.session)
    }

    /// A page of those whose sessions an app has, each once, in the order of their ids.
    package func subjects(of appID: String, after last: String, limit: Int) throws -> [String] {
        try connection.all(
            """
            SELECT DISTINCT subject FROM session WHERE app_id = ?1 AND subject > ?2 ORDER BY subject LIMIT ?3
            """, .text(appID), .text(last), .integer(Int64(limit))
        ) { $0.text(0) }
    }

    /// Whether anything was ever issued for an app that may still be in use.
    package func hasSessions(of appID: String) throws -> Bool {
        try connection.first("SELECT 1 FROM session WHERE app_id = ?1 LIMIT 1", .text(appID)) { _ in true }
            == true
    }

    /// Removes some of what is kept of an app. Returns true when nothing is left.
    func erase(appID: String) throws -> Bool {
        var left = 200
        for table in try connection.appTables() where left > 0 {
            left -= try connection.delete(of: appID, in: table, most: left)
        }
        return left > 0
    }

    /// Ends all sessions of a user, and keeps nothing that names the user; their access tokens stay refused. Returns how
    /// many sessions had not ended before.
    package func forget(_ subject: String, in appID: String, at now: Int64) throws -> Int {
        let now = time(now)
        let (app, user): (SQLValue, SQLValue) = (.text(appID), .text(subject))
        let live =
            try connection.first(
                """
                SELECT count(*) FROM session WHERE app_id = ?1 AND subject = ?2 AND revoked_ms IS NULL
                    AND expires_ms > ?3
                """, app, user, .integer(now)
            ) { $0.int(0) } ?? 0
        try connection.run(
            """
            INSERT INTO revoked_access_token (id, expires_ms)
                SELECT id, ?3 FROM session WHERE app_id = ?1 AND subject = ?2
            ON CONFLICT (id) DO UPDATE SET expires_ms = excluded.expires_ms
            """, app, user, .integer(now + TokenSecrets.overlapMilliseconds))
        try connection.run("DELETE FROM session WHERE app_id = ?1 AND subject = ?2", app, user)
        return live
    }

    /// The ids of sessions that were ended after `oldest`, and of revoked access tokens that are not over yet.
    package func revokedIDs(after oldest: Int64, at now: Int64) throws -> [String] {
        try connection.all(
            """
            SELECT id FROM session WHERE revoked_ms > ?1
            UNION ALL SELECT id FROM revoked_access_token WHERE expires_ms > ?2
            """, .integer(oldest), .integer(now)
        ) { $0.text(0) }
    }

    private static let columns = """
        id, app_id, subject, client_id, scope, generation, created_ms, used_ms, expires_ms, lifetime_from_ms,
        revoked_ms, revocation
        """

    private static func session(_ row: any SQLRow) -> Session {
        Session(
            id: row.text(0), appID: row.text(1), subject: row.text(2), clientID: row.optionalText(3),
            scope: row.text(4), generation: row.int(5), createdMilliseconds: row.int64(6),
            usedMilliseconds: row.int64(7), expiresMilliseconds: row.int64(8),
            lifetimeFromMilliseconds: row.int64(9), revokedMilliseconds: row.optionalInt64(10),
            revocation: row.optionalText(11).flatMap(Session.Revocation.init(rawValue:)))
    }
}
