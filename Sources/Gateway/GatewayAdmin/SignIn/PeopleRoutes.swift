internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct PeopleRoutes: Sendable {
    let passwordCost: Scrypt.Cost

    var all: [AdminRoute] { users + tokens + audit }

    private var users: [AdminRoute] {
        [
            AdminRoute("GET", "/users", .owner, "List users", .list(Self.user.shape)) { call in
                try call.page(
                    try call.directory.admins.users(), at: { PageCursor(0, $0.name) }, json: Self.user.json)
            },
            AdminRoute(
                "POST", "/users", .owner, "Create a user",
                body: .object([
                    .must("name", .text(longest: 64)), .must("role", .choice(of: AdminRole.self)),
                    .must("password", SignInRoutes.password),
                ]), queueClass: .password, .json(Self.user.shape, status: 201)
            ) { call in
                let body = try call.body()
                let name = try body.text("name")
                guard let role: AdminRole = body.value("role"),
                    let password = try SignInRoutes.password(body, of: name, cost: passwordCost)
                else { throw AdminProblem.invalid("role", "is missing") }
                try call.directory.admins.createUser(name: name, role: role, password: password)
                return try Self.answer(call, name, status: 201)
            },
            AdminRoute("GET", "/users/{name}", .owner, "Show a user", .json(Self.user.shape)) { call in
                try Self.answer(call, call[0])
            },
            AdminRoute(
                "PATCH", "/users/{name}", .owner, "Change a user's role, password or both",
                body: .object([
                    .may("role", .choice(of: AdminRole.self)), .may("password", SignInRoutes.password),
                ]), match: .required, queueClass: .password, .json(Self.user.shape)
            ) { call in
                let body = try call.body()
                _ = try Self.user(call, call[0])
                // Outside the transaction, because hashing a password takes a tenth of a second.
                let password = try SignInRoutes.password(body, of: call[0], cost: passwordCost)
                return try call.changing { call in
                    try call.checkMatch(try Self.user(call, call[0]).tagged)
                    try call.directory.admins.changeUser(
                        call[0], role: body.value("role"), password: password)
                    return try Self.answer(call, call[0])
                }
            },
            AdminRoute.delete("/users/{name}", .owner, "Delete a user", match: .optional) { call in
                try call.changing { call in
                    try call.checkMatch(try Self.user(call, call[0]).tagged)
                    try call.directory.admins.deleteUser(call[0])
                }
            },
        ]
    }

    private var tokens: [AdminRoute] {
        [
            AdminRoute("GET", "/tokens", .owner, "List API tokens", .list(Self.token.shape)) { call in
                try call.page(
                    try call.directory.apiTokens.all(),
                    at: { PageCursor($0.createdMilliseconds, $0.id) }, json: Self.token.json)
            },
            AdminRoute(
                "POST", "/tokens", .owner, "Create an API token",
                body: .object([
                    .must("name", .text(longest: 100)), .must("scopes", .list(.choice(AdminToken.scopes))),
                    .may("app", .text(longest: 64)), .may("expires_ms", .milliseconds),
                ]), .json(Self.token.shape.with([.must("token", .string)]), status: 201), answer: createToken),
            AdminRoute("GET", "/tokens/{id}", .owner, "Show an API token", .json(Self.token.shape)) { call in
                guard let token = try call.directory.apiTokens.all().first(where: { $0.id == call[0] }) else {
                    throw AdminProblem.notFound("there is no such API token")
                }
                return call.answer(Self.token.json(token))
            },
            AdminRoute.delete("/tokens/{id}", .owner, "Delete an API token") { call in
                try call.directory.apiTokens.delete(id: call[0])
            },
        ]
    }

    private var audit: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/audit", .viewer, "List changes, newest first",
                query: [.may("app", .text(longest: 64)), .may("actor", .text(longest: 512))],
                .list(Self.entry.shape)
            ) { call in
                let mask = try call.userMask()
                let entries = try call.directory.auditLog.entries(
                    app: call.query("app"), actor: call.query("actor"),
                    before: try call.cursor()?.number ?? .max, limit: call.limit + 1)
                return try call.page(read: entries, at: { PageCursor($0.seq) }) {
                    Self.entry.json(mask.audit($0))
                }
            },
            AdminRoute(
                "GET", "/audit/export", .viewer, "Export changes, newest first",
                query: [.may("app", .text(longest: 64)), .may("actor", .text(longest: 512)), Export.format],
                .file(Export.mediaTypes), answer: exportAudit),
            AdminRoute(
                "GET", "/audit/verify", .viewer,
                "Check that no entry of the audit log was altered or removed",
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

    private static let user = AnswerShape<AdminUser>(
        named: "User", .init("name", \.name), .init("role", \.role),
        .time("created_ms", \.createdMilliseconds),
        .time("last_sign_in_ms", \.signedInMilliseconds), .init("second_factor", \.hasSecondFactor))

    private static let token = AnswerShape<AdminToken>(
        named: "Token", .init("id", \.id), .init("name", \.name),
        .init("scopes", .list(.choice(AdminToken.scopes)), \.scopes), .init("app", \.appID),
        .time("created_ms", \.createdMilliseconds), .time("last_used_ms", \.usedMilliseconds),
        .time("expires_ms", \.expiresMilliseconds))

    private static let entry = AnswerShape<AuditEntry>(
        named: "AuditEntry", .init("seq", \.seq), .time("at_ms", \.atMilliseconds), .init("actor", \.actor),
        .init("role", \.role), .init("action", \.action), .init("target", \.target), .init("app", \.appID),
        .init("before") { value($0.before) }, .init("after") { value($0.after) },
        .init("hash") { hash($0.hash) }, .init("previous_hash") { hash($0.previousHash) })

    private static func value(_ text: String?) -> JSONValue {
        guard let text else { return .null }
        return (try? StrictJSONParser(maximumBytes: 1 << 20).parse(bytes: Array(text.utf8)) { $0.value })
            ?? .string(text)
    }

    private static func hash(_ bytes: [UInt8]) -> String? { bytes.isEmpty ? nil : Base64URL.encode(bytes) }

    // MARK: Answers

    private func exportAudit(_ call: AdminCall) throws -> HTTPResponse {
        let (app, actor, directory) = (call.query("app"), call.query("actor"), call.directory)
        let mask = try call.userMask()
        if !mask.hides { try call.noteReading("audit.export", "", app: app) }
        return Export.list(call, name: "audit", columns: Self.columns, from: .max) { before in
            let entries = try directory.auditLog.entries(app: app, actor: actor, before: before, limit: 500)
            let rows = entries.map { entry in
                let entry = mask.audit(entry)
                return Export.Row(
                    cells: [
                        String(entry.seq), String(entry.atMilliseconds), entry.actor, entry.role,
                        entry.action, entry.target, entry.appID ?? "", entry.before ?? "", entry.after ?? "",
                        Base64URL.encode(entry.hash), Base64URL.encode(entry.previousHash),
                    ], line: Self.entry.json(entry).bytes)
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
        let expires: Int64? = body.value("expires_ms")
        guard expires.map({ $0 > call.nowMilliseconds }) ?? true else {
            throw AdminProblem.invalid("expires_ms", "must be in the future")
        }
        let (entry, text) = try call.directory.apiTokens.create(
            name: try body.text("name"), scopes: body.value("scopes") ?? [], appID: body.value("app"),
            expiresMilliseconds: expires)
        return call.answer(Self.token.json(entry, with: ["token": .string(text)]), status: 201)
    }

    private static func user(_ call: AdminCall, _ name: String) throws -> AdminUser {
        guard let user = try call.directory.admins.users().first(where: { $0.name == name }) else {
            throw AdminProblem.notFound("there is no such user")
        }
        return user
    }

    private static func answer(_ call: AdminCall, _ name: String, status: Int = 200) throws -> HTTPResponse {
        let user = try user(call, name)
        return call.answer(Self.user.json(user), status: status, tag: user.tagged)
    }
}

extension AdminUser {
    /// Includes the password's hash, so that a new password changes the tag.
    fileprivate var tagged: JSONValue {
        .array([.string(name), .string(role.rawValue), .string(password.text)])
    }
}
