internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage
internal import GatewayTokens

/// What the token service does for an app: its rules, clients and sessions, and the keys that sign for all.
struct TokenServiceRoutes: Sendable {
    let sessions: SessionDirectory
    private let index = PseudonymIndex()

    init(sessions: SessionDirectory) {
        self.sessions = sessions
    }

    var all: [AdminRoute] { rules + clients + sessionRoutes + signingKeys }

    private var rules: [AdminRoute] {
        AdminRoute.setting(
            TokenRules.self, "token-rules",
            ("Show how the gateway issues an app's tokens", "Set how the gateway issues an app's tokens")
        ) { call, body, current, rules in
            var rules = rules
            // Programs that were written before there was an absolute lifetime leave it as it is.
            if body.integer("absolute_seconds") == nil { rules.absoluteSeconds = current.absoluteSeconds }
            try call.directory.setTokenRules(rules, for: call[0])
            return [:]
        }
    }

    private var clients: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/clients", .viewer, "List an app's clients of the token service",
                .list(Self.client)
            ) { call in
                try call.page(
                    try call.directory.clients.all(of: call[0]),
                    at: { PagePosition($0.createdMilliseconds, $0.id) }, json: \.json)
            },
            AdminRoute(
                "POST", "/apps/{app}/clients", .operator, "Make a client of the token service",
                body: .object([
                    .may("name", .text(longest: 200)), .may("public_key", .text(longest: 65_536)),
                    .may("grants", .list(Self.grant)),
                ]), .json(Self.client.with([.may("client_secret", .string)]), status: 201),
                answer: createClient),
            AdminRoute(
                "DELETE", "/apps/{app}/clients/{id}", .operator, "Delete a client of the token service",
                .nothing
            ) { call in
                guard try call.directory.clients.all(of: call[0]).contains(where: { $0.id == call[1] }) else {
                    throw AdminProblem.notFound("the app has no such client")
                }
                try call.directory.clients.delete(id: call[1])
                return call.noContent
            },
        ]
    }

    private var sessionRoutes: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/sessions", .viewer, "List an app's sessions, the one opened last first",
                query: [Self.user, .unmask], .list(Self.session)
            ) { call in
                let app = try call.app()
                let user = try user(call, of: app.id)
                let mask = try call.userMask("session", "list", app: app.id, user: user)
                let found = try sessions.sessions(
                    of: app.id, subject: user,
                    before: try call.cursor().map { ($0.number, $0.id) }, limit: call.limit + 1)
                return try call.page(read: found, at: { PagePosition($0.createdMilliseconds, $0.id) }) {
                    var members = $0.members(at: call.nowMilliseconds)
                    members["user"] = mask.user($0.subject, of: app.id).map { .string($0) }
                    return .object(members)
                }
            },
            AdminRoute(
                "POST", "/apps/{app}/sessions", .operator, "Open a session for a user",
                body: .object([.must("user", .text(longest: 512)), .may("client", .text(longest: 128))]),
                .json(Self.session.with([.must("refresh_token", .string)]), status: 201), answer: open),
            AdminRoute(
                "DELETE", "/apps/{app}/sessions", .operator, "End all sessions of a user",
                query: [Self.user], .json(.all(["ended": .count]))
            ) { call in
                let app = try call.app()
                guard let user = try user(call, of: app.id) else {
                    throw AdminProblem.invalidParameter("user", "is missing")
                }
                let ended = try sessions.revokeAll(of: user, in: app.id)
                if ended > 0 {
                    try call.directory.auditLog.note(
                        "session.revoke_user", user, app: app.id, after: ["ended": .integer(Int64(ended))])
                }
                return call.answer(["ended": .integer(Int64(ended))])
            },
            AdminRoute(
                "DELETE", "/apps/{app}/sessions/{id}", .operator, "End a session", .nothing
            ) { call in
                let app = try call.app()
                guard let session = try sessions.session(id: call[1]), session.appID == app.id else {
                    throw AdminProblem.notFound("the app has no such session")
                }
                try sessions.revoke(id: session.id)
                try call.directory.auditLog.note(
                    "session.revoke", session.id, app: app.id, before: ["user": .string(session.subject)])
                return call.noContent
            },
        ]
    }

    private var signingKeys: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/signing-keys", .owner,
                "List the keys that sign access tokens, the one that signs last first",
                .list(Self.signingKey)
            ) { call in
                try call.page(
                    try sessions.signingKeys(), isDescending: true,
                    at: { PagePosition($0.signsFromMilliseconds, $0.id) }, json: \.json)
            },
            AdminRoute(
                "POST", "/signing-keys", .owner, "Make a new key that signs access tokens",
                body: .object([.may("compromised", .bool)]), .json(Self.signingKey, status: 201)
            ) { call in
                let endsOthers = try call.body().bool("compromised") ?? false
                let key = try sessions.rotateSigningKey(endsOthers: endsOthers)
                try call.directory.auditLog.note(
                    "signing_key.create", key.id, after: ["compromised": .bool(endsOthers)])
                return call.answer(key.json, status: 201)
            },
        ]
    }

    // MARK: Shapes

    private static let grant = JSONShape.choice(of: OAuthClient.Grant.self)

    private static let client = JSONShape.named(
        "Client",
        .all([
            "client_id": .string, "app": .string, "name": .string, "grants": .list(grant),
            "proof": .choice(["secret", "key"]), "created_ms": .milliseconds,
        ]))

    private static let user = AdminOperation.Parameter("user", .text(longest: 600))

    private static let session = JSONShape.named(
        "TokenSession",
        .all([
            "id": .string, "user": .string, "client": .nullable(.string), "scope": .string,
            "state": .choice(["active", "expired", "revoked"]), "refreshes": .count,
            "created_ms": .milliseconds, "last_used_ms": .milliseconds, "expires_ms": .milliseconds,
            "revoked_ms": .nullable(.milliseconds),
            "reason": .nullable(.choice(["operator", "client", "reuse"])),
        ]))

    private static let signingKey = JSONShape.named(
        "SigningKey", .all(["id": .string, "signs": .bool, "signs_from_ms": .milliseconds]))

    // MARK: Answers

    /// Whose sessions are meant; nil for those of all.
    private func user(_ call: AdminCall, of appID: String) throws -> String? {
        try call.user(of: appID, in: index) { try sessions.subjects(of: appID, after: $0, $1) }
    }

    private func createClient(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let grants = (body.texts("grants") ?? []).compactMap(OAuthClient.Grant.init(rawValue:))
        let (client, secret) = try call.directory.clients.create(
            of: call[0], name: body.optionalText("name") ?? "", publicKey: body.optionalText("public_key"),
            grants: Set(grants.isEmpty ? OAuthClient.Grant.allCases : grants))
        guard case .object(var members) = client.json else { preconditionFailure() }
        members["client_secret"] = secret.map { .string($0) }
        return call.answer(.object(members), status: 201)
    }

    private func open(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        let opened = try sessions.open(
            for: try body.text("user"), of: app.id, clientID: body.optionalText("client"))
        try call.directory.auditLog.note(
            "session.open", opened.session.id, app: app.id,
            after: [
                "user": .string(opened.session.subject),
                "client": opened.session.clientID.map { .string($0) } ?? .null,
            ])
        var members = opened.session.members(at: call.nowMilliseconds)
        members["refresh_token"] = .string(opened.refreshToken)
        return call.answer(.object(members), status: 201)
    }
}

extension Session {
    fileprivate func members(at milliseconds: Int64) -> [String: JSONValue] {
        let state =
            revokedMilliseconds != nil
            ? "revoked" : isActive(atMilliseconds: milliseconds) ? "active" : "expired"
        return [
            "id": .string(id), "user": .string(subject), "client": clientID.map { .string($0) } ?? .null,
            "scope": .string(scope), "state": .string(state), "refreshes": .integer(Int64(generation)),
            "created_ms": .integer(createdMilliseconds), "last_used_ms": .integer(usedMilliseconds),
            "expires_ms": .integer(expiresMilliseconds),
            "revoked_ms": revokedMilliseconds.map { .integer($0) } ?? .null,
            "reason": revocation.map { .string($0.rawValue) } ?? .null,
        ]
    }
}

extension SessionDirectory.SigningKeyInfo {
    fileprivate var json: JSONValue {
        ["id": .string(id), "signs": .bool(signs), "signs_from_ms": .integer(signsFromMilliseconds)]
    }
}
