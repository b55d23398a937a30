internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Users of the administration, API tokens and what everybody did.
struct PeopleRoutes: Sendable {
    var all: [AdminRoute] { users + tokens + audit }

    private var users: [AdminRoute] {
        [
            AdminRoute("GET", "/users", .owner, "List users", .list(Self.user)) { call in
                try call.page(
                    try call.directory.admins.users(), at: { PagePosition(0, $0.name) }, json: Self.json)
            },
            AdminRoute(
                "POST", "/users", .owner, "Make a user",
                body: .object([
                    .must("name", .text(longest: 64)), .must("role", .choice(of: AdminRole.self)),
                    .must("password", SignInRoutes.password),
                ]), lane: .password, .json(Self.user, status: 201)
            ) { call in
                let body = try call.body()
                let name = try body.text("name")
                guard let role: AdminRole = body.choice("role"),
                    let password = try SignInRoutes.password(body, of: name)
                else { throw AdminProblem.invalid("role", "is missing") }
                try call.directory.admins.createUser(name: name, role: role, password: password)
                return try Self.answer(call, name, status: 201)
            },
            AdminRoute("GET", "/users/{name}", .owner, "Show a user", .json(Self.user)) { call in
                try Self.answer(call, call[0])
            },
            AdminRoute(
                "PATCH", "/users/{name}", .owner, "Change a user's role, password or both",
                body: .object([
                    .may("role", .choice(of: AdminRole.self)), .may("password", SignInRoutes.password),
                ]), match: .required, lane: .password, .json(Self.user)
            ) { call in
                let body = try call.body()
                try call.checkMatch(try Self.user(call, call[0]).tagged)
                try call.directory.admins.changeUser(
                    call[0], role: body.choice("role"), password: try SignInRoutes.password(body, of: call[0])
                )
                return try Self.answer(call, call[0])
            },
            AdminRoute("DELETE", "/users/{name}", .owner, "Delete a user", match: .optional, .nothing) {
                call in
                try call.checkMatch(try Self.user(call, call[0]).tagged)
                try call.directory.admins.deleteUser(call[0])
                return call.noContent
            },
        ]
    }

    private var tokens: [AdminRoute] {
        [
            AdminRoute("GET", "/tokens", .owner, "List API tokens", .list(Self.token)) { call in
                try call.page(
                    try call.directory.apiTokens.all(), at: { PagePosition($0.createdMilliseconds, $0.id) }
                ) { .object(Self.members($0)) }
            },
            AdminRoute(
                "POST", "/tokens", .owner, "Make an API token",
                body: .object([
                    .must("name", .text(longest: 100)),
                    .must("scopes", .list(.choice(["read", "write", "admin"]))),
                    .may("expires_ms", .milliseconds),
                ]), .json(Self.token.with([.must("token", .string)]), status: 201), answer: createToken),
            AdminRoute("GET", "/tokens/{id}", .owner, "Show an API token's entry", .json(Self.token)) {
                call in
                let token = try Self.token(call)
                return call.answer(.object(Self.members(token)), tag: token.tagged)
            },
            AdminRoute("DELETE", "/tokens/{id}", .owner, "Delete an API token", match: .optional, .nothing) {
                call in
                try call.checkMatch(try Self.token(call).tagged)
                try call.directory.apiTokens.delete(id: call[0])
                return call.noContent
            },
        ]
    }

    private var audit: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/audit", .viewer, "List changes, the newest first",
                query: [.init("app", .text(longest: 64)), .init("actor", .text(longest: 512)), .unmask],
                .list(Self.entry)
            ) { call in
                let mask = try call.userMask("audit", "list", app: call.query("app"))
                let entries = try call.directory.auditLog.entries(
                    app: call.query("app"), actor: call.query("actor"),
                    before: try call.cursor()?.number ?? .max, limit: call.limit + 1)
                return try call.page(read: entries, at: { PagePosition($0.seq) }) { mask.audit($0).json }
            },
            AdminRoute(
                "GET", "/audit/export", .viewer, "Export changes, the newest first",
                query: [
                    .init("app", .text(longest: 64)), .init("actor", .text(longest: 512)), Export.format,
                    .unmask,
                ], .file(Export.mediaTypes), answer: exportAudit),
            AdminRoute(
                "GET", "/audit/verify", .viewer, "Check that no change was altered or taken out",
                .json(.all(["ok": .bool, "entries": .count, "broken_at": .nullable(.count)]))
            ) { call in
                let (entries, brokenAt) = try call.directory.auditLog.verify()
                return call.answer([
                    "ok": .bool(brokenAt == nil), "entries": .integer(Int64(entries)),
                    "broken_at": brokenAt.map { .integer($0) } ?? .null,
                ])
            },
        ]
    }

    // MARK: Shapes

    private static let user = JSONShape.named(
        "User",
        .all([
            "name": .string, "role": .choice(of: AdminRole.self), "created_ms": .milliseconds,
            "last_sign_in_ms": .nullable(.milliseconds), "second_factor": .bool,
        ]))

    private static let token = JSONShape.named(
        "Token",
        .all([
            "id": .string, "name": .string, "scopes": .list(.choice(["read", "write", "admin"])),
            "created_ms": .milliseconds, "last_used_ms": .nullable(.milliseconds),
            "expires_ms": .nullable(.milliseconds),
        ]))

    private static let entry = JSONShape.named(
        "AuditEntry",
        .all([
            "seq": .count, "at_ms": .milliseconds, "actor": .string, "role": .string, "action": .string,
            "target": .string, "app": .nullable(.string), "before": .any, "after": .any,
            "hash": .nullable(.string), "previous_hash": .nullable(.string),
        ]))

    // MARK: Answers

    private func exportAudit(_ call: AdminCall) throws -> HTTPResponse {
        let (app, actor, directory) = (call.query("app"), call.query("actor"), call.directory)
        let mask = try call.userMask("audit", "export", app: app)
        return Export.list(call, name: "audit", columns: Self.columns, from: .max) { before in
            let entries = try directory.auditLog.entries(app: app, actor: actor, before: before, limit: 500)
            let rows = entries.map { entry in
                let entry = mask.audit(entry)
                return Export.Row(
                    cells: [
                        String(entry.seq), String(entry.atMilliseconds), entry.actor, entry.role,
                        entry.action, entry.target, entry.appID ?? "", entry.before ?? "",
                        entry.after ?? "", Base64URL.encode(entry.hash),
                        Base64URL.encode(entry.previousHash),
                    ], line: entry.json.bytes)
            }
            return (rows, entries.count == 500 ? entries.last?.seq : nil)
        }
    }

    private static let columns = [
        "seq", "at_ms", "actor", "role", "action", "target", "app", "before", "after", "hash",
        "previous_hash",
    ]

    private func createToken(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let expires = body.integer("expires_ms")
        guard expires.map({ $0 > call.nowMilliseconds }) ?? true else {
            throw AdminProblem.invalid("expires_ms", "must lie in the future")
        }
        let (entry, text) = try call.directory.apiTokens.create(
            name: try body.text("name"), scopes: body.texts("scopes") ?? [], expiresMilliseconds: expires)
        var members = Self.members(entry)
        members["token"] = .string(text)
        return call.answer(.object(members), status: 201, tag: entry.tagged)
    }

    private static func user(_ call: AdminCall, _ name: String) throws -> AdminUser {
        guard let user = try call.directory.admins.users().first(where: { $0.name == name }) else {
            throw AdminProblem.notFound("there is no such user")
        }
        return user
    }

    private static func answer(
        _ call: AdminCall, _ name: String, status: Int = 200
    ) throws -> HTTPResponse {
        let user = try user(call, name)
        return call.answer(json(user), status: status, tag: user.tagged)
    }

    private static func token(_ call: AdminCall) throws -> AdminToken {
        guard let token = try call.directory.apiTokens.all().first(where: { $0.id == call[0] }) else {
            throw AdminProblem.notFound("there is no such API token")
        }
        return token
    }

    private static func json(_ user: AdminUser) -> JSONValue {
        [
            "name": .string(user.name), "role": .string(user.role.rawValue),
            "created_ms": .integer(user.createdMilliseconds),
            "last_sign_in_ms": user.signedInMilliseconds.map { .integer($0) } ?? .null,
            "second_factor": .bool(user.hasSecondFactor),
        ]
    }

    private static func members(_ token: AdminToken) -> [String: JSONValue] {
        [
            "id": .string(token.id), "name": .string(token.name),
            "scopes": .array(token.scopes.map { .string($0) }),
            "created_ms": .integer(token.createdMilliseconds),
            "last_used_ms": token.usedMilliseconds.map { .integer($0) } ?? .null,
            "expires_ms": token.expiresMilliseconds.map { .integer($0) } ?? .null,
        ]
    }
}

extension AdminUser {
    /// What an owner changes; the password's hash, so that a new password makes a new tag.
    fileprivate var tagged: JSONValue {
        .array([.string(name), .string(role.rawValue), .string(password.text)])
    }
}

extension AdminToken {
    fileprivate var tagged: JSONValue { .array([.string(id)]) }
}
