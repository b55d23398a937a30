internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// An app's public keys.
struct KeyRoutes: Sendable {
    let log: any EventLog

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps/{app}/keys", .viewer, "List an app's public keys", .list(Self.key)) {
                call in
                let app = try call.app()
                let uses = try uses(of: app)
                return try call.page(app.keys, at: { PagePosition(Int64($0.slot.rawValue)) }) {
                    json($0, app, uses)
                }.with("ETag", AdminCall.tag(Self.tagged(app)))
            },
            AdminRoute(
                "POST", "/apps/{app}/keys", .operator, "Add a public key",
                body: .object([.must("text", Self.text), .may("description", .text(longest: 200))]),
                .json(Self.key, status: 201), answer: add),
            AdminRoute(
                "POST", "/apps/{app}/keys/import", .operator,
                "Add those keys of a JWK Set that the app does not have, or none",
                body: .object([.must("text", Self.text)]),
                .json(.all(["items": .list(Self.key), "next": .nullable(.string)]), status: 201)
            ) { call in
                let keys = try call.directory.importKeys(
                    fromJWKSet: try call.body().text("text"), to: call[0])
                let app = try call.app()
                let uses = try uses(of: app)
                let added = app.keys.filter { key in keys.contains { $0.id == key.id } }
                return call.answer(
                    ["items": .array(added.map { json($0, app, uses) }), "next": .null], status: 201)
            },
            AdminRoute(
                "POST", "/apps/{app}/keys/preview", .operator, "Look at keys before they are added",
                body: .object([.must("text", Self.text), .may("token", Self.text)]), .json(Self.preview),
                answer: preview),
            AdminRoute("GET", "/apps/{app}/keys/{id}", .viewer, "Show a public key", .json(Self.key)) {
                call in
                try answer(call, key(call).key.id)
            },
            AdminRoute(
                "PATCH", "/apps/{app}/keys/{id}", .operator, "Make a key primary, or describe it",
                body: .object([.may("slot", .choice(["primary"])), .may("description", .text(longest: 200))]),
                match: .required, .json(Self.key), answer: change),
            AdminRoute(
                "DELETE", "/apps/{app}/keys/{id}", .operator, "Delete a public key", match: .optional,
                .nothing
            ) { call in
                let (app, key) = try key(call)
                try call.checkMatch(key.json, Self.tagged(app))
                if let reason = Self.deleteBlocked(key, app) {
                    throw AdminProblem(409, "primary_key", reason)
                }
                try call.directory.deleteKey(keyID: key.id, of: app.id)
                return call.noContent
            },
        ]
    }

    // MARK: Shapes

    private static let text = JSONShape.text(longest: 65_536)

    private static let facts: [JSONMember] = [
        .must("id", .string), .must("kty", .nullable(.string)), .must("alg", .nullable(.string)),
        .must("bits", .nullable(.count)), .must("crv", .nullable(.string)), .must("pem", .string),
        .must("warnings", .list(.string)),
    ]

    private static let key = JSONShape.named(
        "Key",
        .all([
            "slot": .choice(["primary", "secondary", "tertiary"]), "description": .string,
            "added_ms": .milliseconds, "verified_total": .count, "last_verified_ms": .nullable(.milliseconds),
            "can_delete": .bool, "delete_blocked_reason": .nullable(.string),
        ]).with(facts))

    private static let preview = JSONShape.named(
        "KeyPreview",
        .all([
            "keys": .list(
                .all([
                    "kid": .nullable(.string), "source": .choice(["pem", "jwk", "jwks", "certificate"]),
                    "in_apps": .list(.string), "already_here": .bool, "verifies_token": .nullable(.bool),
                ]).with(facts + [.may("expires_ms", .integer(.min ... .max))])), "problems": .list(.string),
            "free_slots": .count,
        ]))

    // MARK: Answers

    /// What the tag of the list is made of.
    private static func tagged(_ app: App) -> JSONValue { .array(app.keys.map(\.json)) }

    private func key(_ call: AdminCall) throws -> (app: App, key: AppKey) {
        let app = try call.app()
        guard let key = app.keys.first(where: { $0.id == call[1] }) else {
            throw AdminProblem(404, "not_found", "the app has no such key")
        }
        return (app, key)
    }

    private func answer(_ call: AdminCall, _ id: String, status: Int = 200) throws -> HTTPResponse {
        let app = try call.app()
        guard let key = app.keys.first(where: { $0.id == id }) else {
            throw AdminProblem(404, "not_found", "the app has no such key")
        }
        return call.answer(json(key, app, try uses(of: app)), status: status, tag: key.json)
    }

    private static func read(_ text: String) throws -> PastedKeys {
        do throws(JOSEError) {
            return try PastedKeys(text: text)
        } catch {
            var problem = AdminProblem(
                422, error.code == .secretKey ? "private_key" : "invalid", error.reason)
            problem.errors = [(.pointer("/text"), error.reason)]
            throw problem
        }
    }

    private func add(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let text = try body.text("text")
        let description = body.optionalText("description") ?? ""
        let app = try call.app()
        let pasted = try Self.read(text)
        guard let item = pasted.items.first, pasted.items.count == 1 else {
            throw AdminProblem.invalid(
                "text", "holds \(pasted.items.count) keys: add them one by one, the preview has each as PEM")
        }
        // A set is no form of one key: it is kept as the key that it holds.
        let kept = item.source == .jwks ? item.key.jwk : text
        let key = try call.directory.addKey(kept, description: description, to: app.id)
        return try answer(call, key.id, status: 201)
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let (app, key) = try key(call)
        try call.checkMatch(key.json, Self.tagged(app))
        if body.optionalText("slot") != nil { try call.directory.makePrimary(keyID: key.id, of: app.id) }
        if let description = body.optionalText("description") {
            try call.directory.describeKey(keyID: key.id, of: app.id, as: description)
        }
        return try answer(call, key.id)
    }

    private func preview(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        let pasted = try Self.read(try body.text("text"))
        let token = body.optionalText("token")
        let apps = try call.directory.apps()
        let keys = pasted.items.map { item -> JSONValue in
            let key = item.key
            let users = apps.filter { $0.keys.contains { $0.id == key.thumbprint } }.map(\.id)
            var warnings = Self.warnings(key, app)
            var members = Self.members(key, app)
            if let expiresAt = item.expiresAt {
                members["expires_ms"] = .integer(Int64(expiresAt * 1000))
                if expiresAt * 1000 < Double(call.nowMilliseconds) {
                    warnings.append("The certificate has expired; only its key is used, its dates are not.")
                }
            }
            members["kid"] = key.kid.map { .string($0) } ?? .null
            members["source"] = .string(item.source.rawValue)
            members["warnings"] = .array(warnings.map { .string($0) })
            members["in_apps"] = .array(users.map { .string($0) })
            members["already_here"] = .bool(users.contains(app.id))
            members["verifies_token"] =
                token.map { .bool(Self.verifies($0, key, at: call.nowMilliseconds)) } ?? .null
            return .object(members)
        }
        return call.answer([
            "keys": .array(keys), "problems": .array(pasted.problems.map { .string($0) }),
            "free_slots": .integer(Int64(AppDirectory.maximumKeys - app.keys.count)),
        ])
    }

    private static func verifies(_ token: String, _ key: PublicKey, at milliseconds: Int64) -> Bool {
        var policy = ClaimsPolicy()
        policy.algorithms = JWSAlgorithm.all
        let verifier = TokenVerifier(
            keys: KeyRing(entries: [KeyRing.Entry(id: key.thumbprint, key: key)]), policy: policy)
        let trimmed = String(token.filter { !$0.isWhitespace })
        return verifier.inspect(trimmed, at: Double(milliseconds) / 1000).matchedKeyID != nil
    }

    private static func warnings(_ key: PublicKey, _ app: App) -> [String] {
        let algorithm = algorithm(of: key, app)
        if app.policy.algorithms.contains(where: { $0.rawValue == algorithm }) { return [] }
        return ["The app's policy does not allow \(algorithm), so the key verifies nothing yet."]
    }

    private static func algorithm(of key: PublicKey, _ app: App) -> String {
        if let bound = key.algorithm { return bound.rawValue }
        return app.policy.algorithms.map(\.rawValue).first { $0 == "RS256" || $0 == "PS256" } ?? "RS256"
    }

    private static func members(_ key: PublicKey, _ app: App) -> [String: JSONValue] {
        [
            "id": .string(key.thumbprint), "kty": .string(key.keyType),
            "alg": .string(algorithm(of: key, app)),
            "bits": key.keyType == "RSA" ? .integer(Int64(key.bits)) : .null,
            "crv": key.curve.map { .string($0) } ?? .null, "pem": .string(key.pem),
        ]
    }

    private static func deleteBlocked(_ key: AppKey, _ app: App) -> String? {
        guard key.slot == .primary, app.keys.count > 1 else { return nil }
        return "The primary key cannot be deleted while there is another: make another one primary first."
    }

    private func uses(of app: App) throws -> [String: KeyUse] {
        let uses = try log.keyUses(of: app.id)
        return Dictionary(uniqueKeysWithValues: uses.map { ($0.keyID, $0) })
    }

    private func json(_ key: AppKey, _ app: App, _ uses: [String: KeyUse]) -> JSONValue {
        let use = uses[key.id]
        let blocked = Self.deleteBlocked(key, app)
        var members: [String: JSONValue] = [
            "id": .string(key.id), "kty": .null, "alg": .null, "bits": .null, "crv": .null,
            "pem": .string(key.text), "warnings": ["The key cannot be read: delete it and add it again."],
        ]
        if let read = try? PublicKey(text: key.text) {
            members = Self.members(read, app)
            members["warnings"] = .array(Self.warnings(read, app).map { .string($0) })
        }
        members["slot"] = .string("\(key.slot)")
        members["description"] = .string(key.description)
        members["added_ms"] = .integer(key.addedMilliseconds)
        members["verified_total"] = .integer(use?.verified ?? 0)
        members["last_verified_ms"] = use.map { .integer($0.lastMilliseconds) } ?? .null
        members["can_delete"] = .bool(blocked == nil)
        members["delete_blocked_reason"] = blocked.map { .string($0) } ?? .null
        return .object(members)
    }
}
