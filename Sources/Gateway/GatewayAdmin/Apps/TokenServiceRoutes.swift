internal import CountersignCore
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

struct TokenServiceRoutes: Sendable {
    let families: TokenFamilyDirectory
    let index = PseudonymIndex()

    var all: [AdminRoute] { rules + clients + familyRoutes + signingKeys }

    private var rules: [AdminRoute] {
        AdminRoute.setting(
            TokenRules.self, "token-rules",
            ("Show how the gateway issues an app's tokens", "Set how the gateway issues an app's tokens")
        ) { call, body, current, rules in
            var rules = rules
            // Older clients do not send the absolute lifetime, so it is left unchanged.
            if body.members["absolute_seconds"] ?? .null == .null {
                rules.absoluteSeconds = current.absoluteSeconds
            }
            try call.directory.setTokenRules(rules, for: call[0])
        }
    }

    private var clients: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/clients", .viewer, "List an app's clients of the token service",
                .list(Self.client.shape)
            ) { call in
                try call.page(
                    try call.directory.clients.all(of: call[0]),
                    at: { PageCursor($0.createdMilliseconds, $0.id) }, json: Self.client.json)
            },
            AdminRoute(
                "POST", "/apps/{app}/clients", .operator, "Create a client of the token service",
                body: .object([
                    .may("name", .text(longest: 200)), .may("public_key", .raw(longest: 65_536)),
                    .may("grants", .list(Self.grant)),
                ]), .json(Self.client.shape.with([.may("client_secret", .string)]), status: 201),
                answer: createClient),
            AdminRoute.delete("/apps/{app}/clients/{id}", .operator, "Delete a client of the token service") {
                call in
                guard try call.directory.clients.all(of: call[0]).contains(where: { $0.id == call[1] }) else {
                    throw AdminProblem.notFound("the app has no such client")
                }
                try call.directory.clients.delete(id: call[1])
            },
        ]
    }

    private var familyRoutes: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/sessions", .viewer, "List an app's sessions, most recently opened first",
                query: [Self.user], .list(Self.family.shape)
            ) { call in
                let app = try call.app()
                let user = try user(call, of: app.id)
                let mask = try call.userMask()
                let found = try families.families(
                    of: app.id, subject: user,
                    before: try call.cursor().map { ($0.number, $0.id) }, limit: call.limit + 1)
                return try call.page(read: found, at: { PageCursor($0.createdMilliseconds, $0.id) }) {
                    Self.family.json(
                        Resource(
                            family: $0, user: mask.user($0.subject, of: app.id), now: call.nowMilliseconds)
                    )
                }
            },
            AdminRoute(
                "POST", "/apps/{app}/sessions", .operator, "Open a session for a user",
                body: .object([.must("user", .text(longest: 512)), .may("client", .text(longest: 128))]),
                .json(Self.family.shape.with([.must("refresh_token", .string)]), status: 201), answer: open),
            AdminRoute(
                "DELETE", "/apps/{app}/sessions", .operator, "End all sessions of a user",
                query: [Self.user], .json(.all(["ended": .count]))
            ) { call in
                let app = try call.app()
                guard let user = try user(call, of: app.id) else {
                    throw AdminProblem.invalidParameter("user", "is missing")
                }
                let ended = try families.revokeAll(of: user, in: app.id)
                if ended > 0 {
                    try call.directory.auditLog.note(
                        "session.revoke_user", user, app: app.id, after: ["ended": .integer(Int64(ended))])
                }
                return call.answer(["ended": .integer(Int64(ended))])
            },
            AdminRoute.delete("/apps/{app}/sessions/{id}", .operator, "End a session") { call in
                let app = try call.app()
                guard let family = try families.family(id: call[1]), family.appID == app.id else {
                    throw AdminProblem.notFound("the app has no such session")
                }
                try families.revoke(id: family.id)
                try call.directory.auditLog.note(
                    "session.revoke", family.id, app: app.id, before: ["user": .string(family.subject)])
            },
        ]
    }

    private var signingKeys: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/signing-keys", .owner,
                "List the keys that sign access tokens, newest first",
                .list(Self.signingKey.shape)
            ) { call in
                try call.page(
                    try families.signingKeys(), isDescending: true,
                    at: { PageCursor($0.signsFromMilliseconds, $0.id) }, json: Self.signingKey.json)
            },
            AdminRoute(
                "POST", "/signing-keys", .owner, "Create a new key that signs access tokens",
                body: .object([.may("compromised", .bool)]), .json(Self.signingKey.shape, status: 201)
            ) { call in
                let endsOthers = try call.body().value("compromised") ?? false
                let key = try families.rotateSigningKey(endsOthers: endsOthers)
                try call.directory.auditLog.note(
                    "signing_key.create", key.id, after: ["compromised": .bool(endsOthers)])
                return call.answer(Self.signingKey.json(key), status: 201)
            },
        ]
    }

    // MARK: Shapes

    private static let grant = JSONShape.choice(of: OAuthClient.Grant.self)

    private static let client = AnswerShape<OAuthClient>(
        named: "Client", .init("client_id", \.id), .init("app", \.appID), .init("name", \.name),
        .init("grants", .list(grant)) { $0.grants.map(\.rawValue).sorted() },
        .init("proof", .choice(["secret", "key"])) { $0.publicKey == nil ? "secret" : "key" },
        .time("created_ms", \.createdMilliseconds))

    private static let user = JSONMember.may("user", .text(longest: 600))

    private struct Resource {
        let family: TokenFamily
        let user: String?
        let now: Int64

        var state: String {
            family.revokedMilliseconds != nil
                ? "revoked" : family.isActive(atMilliseconds: now) ? "active" : "expired"
        }
    }

    private static let family = AnswerShape<Resource>(
        named: "TokenFamily", .init("id", \.family.id), .init("user", .string, \.user),
        .init("client", \.family.clientID), .init("scope", \.family.scope),
        .init("state", .choice(["active", "expired", "revoked"]), \.state),
        .init("refreshes", \.family.generation), .time("created_ms", \.family.createdMilliseconds),
        .time("last_used_ms", \.family.usedMilliseconds), .time("expires_ms", \.family.expiresMilliseconds),
        .time("revoked_ms", \.family.revokedMilliseconds),
        .init("reason", .nullable(.choice(["operator", "client", "reuse"])), \.family.revocation?.rawValue))

    private static let signingKey = AnswerShape<TokenFamilyDirectory.SigningKeyInfo>(
        named: "SigningKey", .init("id", \.id), .init("signs", \.signs),
        .time("signs_from_ms", \.signsFromMilliseconds))

    // MARK: Answers

    private func user(_ call: AdminCall, of appID: String) throws -> String? {
        try call.user(of: appID, in: index) { try families.subjects(of: appID, after: $0, $1) }
    }

    private func createClient(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let grants: [OAuthClient.Grant] = body.value("grants") ?? []
        let (client, secret) = try call.directory.clients.create(
            of: call[0], name: body.value("name") ?? "", publicKey: body.value("public_key"),
            grants: Set(grants.isEmpty ? OAuthClient.Grant.allCases : grants))
        return call.answer(
            Self.client.json(client, with: ["client_secret": secret.map { .string($0) }]), status: 201)
    }

    private func open(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        let opened = try families.open(
            for: try body.text("user"), of: app.id, clientID: body.value("client"))
        try call.directory.auditLog.note(
            "session.open", opened.family.id, app: app.id,
            after: [
                "user": .string(opened.family.subject),
                "client": opened.family.clientID.map { .string($0) } ?? .null,
            ])
        let shown = Resource(family: opened.family, user: opened.family.subject, now: call.nowMilliseconds)
        return call.answer(
            Self.family.json(shown, with: ["refresh_token": .string(opened.refreshToken)]), status: 201)
    }
}
