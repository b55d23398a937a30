package import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Opens, refreshes and revokes token families, within a transaction of ``TokenFamilyStore``. ``RefreshTokenReuse`` has
/// the rule for a token that was already exchanged.
package struct TokenFamilyTable {
    let connection: any SQLConnection
    /// The key from which refresh tokens derive; see ``RefreshToken``.
    let key: [UInt8]
    /// The database's time in milliseconds since 1970. Replaces the times passed by callers, because the clocks of
    /// gateways may differ by more than the reuse window. Nil for a database of a single gateway.
    let databaseTime: Int64?

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

    /// A request with a refresh token.
    package struct Presentation: Sendable {
        /// The authenticated client; nil without client authentication.
        package var clientID: String?
        /// The app named as a public client by the request, if any.
        package var publicClientID: String?
        /// Milliseconds since 1970.
        package var now: Int64
        /// Returns the rules of the token family's app; nil for a deleted app.
        package var rules: @Sendable (_ appID: String) -> TokenRules?
        /// The requested scope; nil requests the token family's scope.
        package var scope: String?
        /// The client's assertion, if it may be used only once.
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
        case granted(TokenFamily, RefreshToken)
        case rejected(Rejection)
    }

    package enum Rejection: Sendable, Equatable {
        /// The token family, token or app does not exist.
        case unknown
        case expired
        case revoked
        case otherClient
        /// The token was already replaced. The token family was revoked.
        case reused(familyID: String, appID: String)
        case replayed
        /// The requested scope exceeds the token family's scope.
        case scope
    }

    package func open(_ opening: Opening, at now: Int64) throws -> (TokenFamily, RefreshToken) {
        let now = time(now)
        let token = RefreshToken(family: .random(count: RefreshToken.familyBytes), key: key)
        let family = TokenFamily(
            id: token.familyID, appID: opening.appID, subject: opening.subject, clientID: opening.clientID,
            scope: opening.scope, generation: 0, createdMilliseconds: now, usedMilliseconds: now,
            expiresMilliseconds: opening.rules.expiry(of: now, usedAt: now),
            lifetimeFromMilliseconds: now, revokedMilliseconds: nil, revocation: nil)
        try connection.run(
            """
            INSERT INTO session (id, app_id, subject, client_id, scope, generation, created_ms, used_ms,
                expires_ms, lifetime_from_ms)
            VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?6, ?7, ?6)
            """, .text(family.id), .text(family.appID), .text(family.subject),
            .optionalText(family.clientID), .text(family.scope), .integer(now),
            .integer(family.expiresMilliseconds))
        try connection.run(
            "INSERT INTO refresh_token (session_id, generation, hash) VALUES (?, 0, ?)", .text(family.id),
            .blob(token.hash))
        return (family, token)
    }

    /// Exchanges a refresh token. The tag of the token was verified when it was parsed.
    package func exchange(_ token: RefreshToken, _ presentation: Presentation) throws -> Exchange {
        let now = time(presentation.now)
        if let assertion = presentation.assertion, try !spend(assertion) { return .rejected(.replayed) }
        guard let family = try family(id: token.familyID, forUpdate: true),
            let rules = presentation.rules(family.appID)
        else { return .rejected(.unknown) }
        guard family.clientID == presentation.clientID,
            presentation.publicClientID == nil || presentation.publicClientID == family.appID
        else { return .rejected(.otherClient) }
        guard family.revokedMilliseconds == nil else { return .rejected(.revoked) }
        let lifetimeFrom = family.lifetimeFromMilliseconds
        // The rules may have become stricter since the token family's expiry was stored.
        guard family.isActive(atMilliseconds: now), now < rules.end(of: lifetimeFrom) else {
            return .rejected(.expired)
        }
        if let scope = presentation.scope, !TokenScope.contains(family.scope, scope) {
            return .rejected(.scope)
        }
        switch try reuse(of: token, in: family, rules, at: now) {
        case .active:
            return try rotate(
                family, token, expires: rules.expiry(of: lifetimeFrom, usedAt: now), at: now)
        case .repeated(let child): return .granted(family, child)
        case .unknown: return .rejected(.unknown)
        case .stolen:
            try end(family, .reuse, at: now)
            return .rejected(.reused(familyID: family.id, appID: family.appID))
        }
    }

    private func reuse(
        of token: RefreshToken, in family: TokenFamily, _ rules: TokenRules, at now: Int64
    ) throws -> RefreshTokenReuse {
        let presented = Int(token.generation)
        return RefreshTokenReuse(
            presented: presented, active: family.generation,
            stored: try record(family.id, presented).flatMap { $0.hash == token.hash ? $0 : nil },
            child: try presented == family.generation - 1 ? activeChild(of: token, in: family) : nil,
            window: Milliseconds(seconds: rules.reuseSeconds).count, at: now)
    }

    private func rotate(
        _ family: TokenFamily, _ token: RefreshToken, expires: Int64, at now: Int64
    ) throws -> Exchange {
        let nonce = [UInt8].random(count: RefreshToken.nonceBytes)
        let child = token.child(nonce: nonce, key: key)
        let generation = Int64(child.generation)
        try connection.run(
            "UPDATE refresh_token SET exchanged_ms = ?3 WHERE session_id = ?1 AND generation = ?2",
            .text(family.id), .integer(generation - 1), .integer(now))
        try connection.run(
            "INSERT INTO refresh_token (session_id, generation, hash, nonce) VALUES (?, ?, ?, ?)",
            .text(family.id), .integer(generation), .blob(child.hash), .blob(nonce))
        // Reuse of an older token is detected without its row, because a token names its family and generation.
        try connection.run(
            "DELETE FROM refresh_token WHERE session_id = ?1 AND generation < ?2", .text(family.id),
            .integer(generation - 1))
        try connection.run(
            "UPDATE session SET generation = ?2, used_ms = ?3, expires_ms = ?4 WHERE id = ?1",
            .text(family.id), .integer(generation), .integer(now), .integer(expires))
        return .granted(family, child)
    }

    private func activeChild(of parent: RefreshToken, in family: TokenFamily) throws -> RefreshToken? {
        guard let active = try record(family.id, family.generation), let nonce = active.nonce else {
            return nil
        }
        let child = parent.child(nonce: nonce, key: key)
        return child.hash == active.hash ? child : nil
    }

    /// Returns false when the assertion was used before.
    package func spend(_ assertion: SpentAssertion) throws -> Bool {
        try connection.run(
            "INSERT INTO used_assertion (client_id, id, expires_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            .text(assertion.clientID),
            .text(assertion.id), .integer(assertion.expiresMilliseconds))
        return connection.changes > 0
    }

    package enum Revocation: Sendable {
        /// The id of the revoked token family or access token.
        case revoked(String)
        case nothing
        case rejected(Rejection)
    }

    /// Revokes the token family of a refresh token, even if the token was already exchanged.
    package func revoke(
        _ token: RefreshToken, clientID: String?, publicClientID: String?, at now: Int64
    ) throws -> Revocation {
        let now = time(now)
        guard let family = try family(id: token.familyID, forUpdate: true),
            family.revokedMilliseconds == nil
        else {
            return .nothing
        }
        guard family.clientID == clientID, publicClientID == nil || publicClientID == family.appID else {
            return .rejected(.otherClient)
        }
        try end(family, .client, at: now)
        return .revoked(family.id)
    }

    /// Revokes an access token, but not its token family.
    package func revoke(_ claims: IssuedClaims, clientID: String?, publicClientID: String?) throws
        -> Revocation
    {
        let isOwner =
            clientID.map { $0 == claims.clientID }
            ?? (claims.clientID == claims.audience
                && (publicClientID == nil || publicClientID == claims.audience))
        guard isOwner else { return .rejected(.otherClient) }
        try connection.run(
            "INSERT INTO revoked_access_token (id, expires_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
            .text(claims.tokenID),
            .integer(Milliseconds(seconds: claims.expiresAt).count))
        return .revoked(claims.tokenID)
    }

    /// Deletes some of the expired rows. Returns true when no expired row is left. Ignores sudden clock jumps, because
    /// a token whose revocation is deleted would become valid again when the clock is corrected.
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

    static let prunedRows = 500
    /// How long revocations and used assertions are stored after their expiry, in case the clock is ahead.
    private static let doubtedMilliseconds: Int64 = 86_400_000
    /// How long expired token families can be listed.
    private static let keptMilliseconds: Int64 = 30 * 86_400_000

    /// Returns the token family before the change; nil when it does not exist or was already revoked.
    @discardableResult
    package func end(id: String, _ reason: TokenFamily.Revocation, at now: Int64) throws -> TokenFamily? {
        let now = time(now)
        guard let family = try family(id: id, forUpdate: true), family.revokedMilliseconds == nil else {
            return nil
        }
        try end(family, reason, at: now)
        return family
    }

    private func end(_ family: TokenFamily, _ reason: TokenFamily.Revocation, at now: Int64) throws {
        try connection.run(
            "UPDATE session SET revoked_ms = ?2, revocation = ?3 WHERE id = ?1", .text(family.id),
            .integer(now), .text(reason.rawValue))
    }

    private func time(_ own: Int64) -> Int64 { databaseTime ?? own }

    // MARK: Rows

    private func record(_ familyID: String, _ generation: Int) throws -> StoredRefreshToken? {
        try connection.first(
            "SELECT hash, nonce, exchanged_ms FROM refresh_token WHERE session_id = ? AND generation = ?",
            .text(familyID), .integer(Int64(generation))
        ) { row in
            StoredRefreshToken(
                hash: row.blob(0), nonce: row.isNull(1) ? nil : row.blob(1),
                exchangedMilliseconds: row.optionalInt64(2))
        }
    }

    /// `forUpdate` locks the token family until the end of the transaction.
    package func family(id: String, forUpdate: Bool = false) throws -> TokenFamily? {
        try connection.first(
            "SELECT \(Self.columns) FROM session WHERE id = ?\(forUpdate ? connection.forUpdate : "")",
            .text(id),
            row: Self.family)
    }

    /// Newest first.
    package func families(
        of appID: String, subject: String?, before last: (milliseconds: Int64, id: String)? = nil, limit: Int
    ) throws -> [TokenFamily] {
        try connection.all(
            """
            SELECT \(Self.columns) FROM session
            WHERE app_id = ?1 AND (subject = ?2 OR ?2 IS NULL) AND (created_ms, id) < (?4, ?5)
            ORDER BY created_ms DESC, id DESC LIMIT ?3
            """, .text(appID), .optionalText(subject), .integer(Int64(limit)),
            .integer(last?.milliseconds ?? .max), .text(last?.id ?? ""), row: Self.family)
    }

    /// Ordered by id.
    package func subjects(of appID: String, after last: String, limit: Int) throws -> [String] {
        try connection.all(
            """
            SELECT DISTINCT subject FROM session WHERE app_id = ?1 AND subject > ?2 ORDER BY subject LIMIT ?3
            """, .text(appID), .text(last), .integer(Int64(limit))
        ) { $0.text(0) }
    }

    /// Whether an app has token families, so that issued tokens may still be in use.
    package func hasFamilies(of appID: String) throws -> Bool {
        try connection.first("SELECT 1 FROM session WHERE app_id = ?1 LIMIT 1", .text(appID)) { _ in true }
            == true
    }

    /// Deletes some rows of an app. Returns true when no rows of the app are left.
    func erase(appID: String) throws -> Bool {
        var left = 200
        for table in try connection.appTables() where left > 0 {
            left -= try connection.delete(of: appID, in: table, most: left)
        }
        return left > 0
    }

    /// Deletes a user's token families and revokes the user's access tokens. Returns how many families were active.
    package func deleteFamilies(of subject: String, in appID: String, at now: Int64) throws -> Int {
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

    /// The ids of token families revoked after `oldest`, and of revoked access tokens that have not expired.
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

    private static func family(_ row: any SQLRow) -> TokenFamily {
        TokenFamily(
            id: row.text(0), appID: row.text(1), subject: row.text(2), clientID: row.optionalText(3),
            scope: row.text(4), generation: row.int(5), createdMilliseconds: row.int64(6),
            usedMilliseconds: row.int64(7), expiresMilliseconds: row.int64(8),
            lifetimeFromMilliseconds: row.int64(9), revokedMilliseconds: row.optionalInt64(10),
            revocation: row.optionalText(11).flatMap(TokenFamily.Revocation.init(rawValue:)))
    }
}
