internal import CountersignCore

/// Users of the administration, API tokens and what everybody did.
struct PeopleRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/users", .owner, "List users") { call in
                call.list(try call.directory.users().map(Self.json))
            },
            AdminRoute("POST", "/users", .owner, "Make a user", hashesPassword: true) { call in
                let body = try call.body("name", "role", "password")
                let name = try body.text("name")
                guard let role = try body.choice("role", AdminRole.allCases) else {
                    throw AdminProblem.invalid("role", "is missing")
                }
                guard let password = try SignInRoutes.password(body) else {
                    throw AdminProblem.invalid("password", "is missing")
                }
                try call.directory.createUser(name: name, role: role, password: password)
                return call.answer(try Self.user(name, call), status: 201)
            },
            AdminRoute("PATCH", "/users/{name}", .owner, "Change a user", hashesPassword: true) { call in
                let body = try call.body("role", "password")
                let role = try body.choice("role", AdminRole.allCases)
                try call.directory.changeUser(call[0], role: role, password: try SignInRoutes.password(body))
                return call.answer(try Self.user(call[0], call))
            },
            AdminRoute("DELETE", "/users/{name}", .owner, "Delete a user") { call in
                try call.directory.deleteUser(call[0])
                return call.noContent
            },
            AdminRoute("GET", "/tokens", .owner, "List API tokens") { call in
                call.list(try call.directory.adminTokens().map { .object(Self.members($0)) })
            },
            AdminRoute("POST", "/tokens", .owner, "Make an API token") { call in
                let body = try call.body("name", "scopes", "expires_ms")
                let (entry, text) = try call.directory.createAdminToken(
                    name: try body.text("name"), scopes: try body.texts("scopes") ?? [],
                    expiresMilliseconds: try body.integer(
                        "expires_ms", call.nowMilliseconds...253_402_300_799_999))
                var members = Self.members(entry)
                members["token"] = .string(text)
                return call.answer(.object(members), status: 201)
            },
            AdminRoute("DELETE", "/tokens/{id}", .owner, "Delete an API token") { call in
                try call.directory.deleteAdminToken(id: call[0])
                return call.noContent
            },
            AdminRoute("GET", "/audit", .viewer, "List changes, the newest first") { call in
                let limit = try call.limit()
                let entries = try call.directory.auditEntries(
                    app: call.query("app"), actor: call.query("actor"),
                    before: try call.integer("cursor", 0...Int64.max) ?? .max, limit: limit + 1)
                let page = entries.prefix(limit)
                return call.list(
                    page.map(\.json), next: entries.count > limit ? page.last.map { String($0.seq) } : nil)
            },
            AdminRoute("GET", "/audit/verify", .viewer, "Check that no change was altered or taken out") {
                call in
                let (entries, brokenAt) = try call.directory.verifyAudit()
                return call.answer([
                    "ok": .bool(brokenAt == nil), "entries": .integer(Int64(entries)),
                    "broken_at": brokenAt.map { .integer($0) } ?? .null,
                ])
            },
        ]
    }

    private static func user(_ name: String, _ call: AdminCall) throws -> JSONValue {
        guard let user = try call.directory.users().first(where: { $0.name == name }) else {
            throw AdminProblem(404, "not_found", "there is no such user")
        }
        return json(user)
    }

    private static func json(_ user: AdminUser) -> JSONValue {
        [
            "name": .string(user.name), "role": .string(user.role.rawValue),
            "created_ms": .integer(user.createdMilliseconds),
            "last_sign_in_ms": user.signedInMilliseconds.map { .integer($0) } ?? .null,
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
