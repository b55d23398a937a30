internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct KeyRoutes: Sendable {
    let log: any EventLog

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/keys", .viewer, "List an app's public keys", .list(Self.keyShape.shape)
            ) {
                call in
                let app = try call.app()
                return try call.page(
                    shown(app), at: { PageCursor(Int64($0.kept.slot.rawValue)) }, json: Self.keyShape.json
                ).with("ETag", AdminCall.tag(Self.tagged(app)))
            },
            AdminRoute(
                "POST", "/apps/{app}/keys", .operator, "Add a public key",
                body: .object([.must("text", Self.text), .may("description", .text(longest: 200))]),
                .json(Self.keyShape.shape, status: 201), answer: add),
            AdminRoute(
                "POST", "/apps/{app}/keys/import", .operator,
                "Add the keys of a JWK Set that the app does not have yet, all or none",
                body: .object([.must("text", Self.text)]),
                .json(.page(of: Self.keyShape.shape), status: 201)
            ) { call in
                let keys = try call.directory.importKeys(
                    fromJWKSet: try call.body().text("text"), to: call[0])
                let added = try shown(try call.app()).filter { key in keys.contains { $0.id == key.kept.id } }
                return call.answer(all: added, Self.keyShape, status: 201)
            },
            AdminRoute(
                "POST", "/apps/{app}/keys/preview", .operator, "Preview public keys before adding them",
                body: .object([.must("text", Self.text), .may("token", Self.text)]), .json(Self.preview),
                answer: preview),
            AdminRoute(
                "GET", "/apps/{app}/keys/{id}", .viewer, "Show a public key", .json(Self.keyShape.shape)
            ) {
                call in
                try answer(call, call[1])
            },
            AdminRoute(
                "PATCH", "/apps/{app}/keys/{id}", .operator,
                "Make a public key primary, or change its description",
                body: .object([.may("slot", .choice(["primary"])), .may("description", .text(longest: 200))]),
                match: .required, .json(Self.keyShape.shape), answer: change),
            AdminRoute.delete("/apps/{app}/keys/{id}", .operator, "Delete a public key", match: .optional) {
                call in
                try call.changing { call in
                    let (app, key) = try key(call)
                    try call.checkMatch(key.json, Self.tagged(app))
                    if let reason = Self.deleteBlocked(key, app) {
                        throw AdminProblem(409, "primary_key", reason)
                    }
                    try call.directory.deleteKey(keyID: key.id, of: app.id)
                }
            },
        ]
    }

    // MARK: Shapes

    private static let text = JSONShape.raw(longest: 65_536)

    /// Information about a key. For a text that is not a usable key, only the id and the text are known.
    private struct KeyInfo {
        let id: String
        let text: String
        let key: PublicKey?
        let algorithm: String?
        let warnings: [String]
    }

    private static let factsShape = AnswerShape<KeyInfo>(
        .init("id", \.id), .init("kty", \.key?.keyType), .init("alg", \.algorithm),
        .init("bits") { facts in facts.key.flatMap { $0.keyType == "RSA" ? $0.bits : nil } },
        .init("crv", \.key?.curve), .init("pem") { $0.key?.pem ?? $0.text }, .init("warnings", \.warnings))

    private struct Resource {
        let kept: AppKey
        let facts: KeyInfo
        let use: KeyUse?
        let deleteBlocked: String?
    }

    private static let keyShape = AnswerShape<Resource>(
        named: "Key", first: factsShape.fields.map { $0.of(\.facts) },
        .init("slot", .choice(["primary", "secondary", "tertiary"])) { "\($0.kept.slot)" },
        .init("description", \.kept.description), .time("added_ms", \.kept.addedMilliseconds),
        .init("verified_total", .count) { $0.use?.verified ?? 0 },
        .time("last_verified_ms", \.use?.lastMilliseconds), .init("can_delete") { $0.deleteBlocked == nil },
        .init("delete_blocked_reason", \.deleteBlocked))

    private struct Pasted {
        let item: PastedKeys.Item
        let facts: KeyInfo
        /// The ids of the apps with this key.
        let users: [String]
        let isHere: Bool
        let verifiesToken: Bool?
    }

    private static let pastedShape = AnswerShape<Pasted>(
        first: factsShape.fields.map { $0.of(\.facts) }, .init("kid", \.item.key.kid),
        .init("source", .choice(["pem", "jwk", "jwks", "certificate"]), \.item.source.rawValue),
        .init("in_apps", \.users), .init("already_here", \.isHere),
        .init("verifies_token", \.verifiesToken))

    private static let preview = JSONShape.named(
        "KeyPreview",
        .all([
            "keys": .list(pastedShape.shape.with([.may("expires_ms", .integer(.min ... .max))])),
            "problems": .list(.string), "free_slots": .count,
        ]))

    // MARK: Answers

    private static func tagged(_ app: App) -> JSONValue { .array(app.keys.map(\.json)) }

    private func key(_ call: AdminCall) throws -> (app: App, key: AppKey) {
        let app = try call.app()
        guard let key = app.keys.first(where: { $0.id == call[1] }) else { throw Self.noKey }
        return (app, key)
    }

    private func answer(_ call: AdminCall, _ id: String, status: Int = 200) throws -> HTTPResponse {
        guard let key = try shown(try call.app()).first(where: { $0.kept.id == id }) else { throw Self.noKey }
        return call.answer(Self.keyShape.json(key), status: status, tag: key.kept.json)
    }

    private static let noKey = AdminProblem.notFound("the app has no such key")

    private static func read(_ text: String) throws -> PastedKeys {
        do throws(JOSEError) {
            return try PastedKeys(text: text)
        } catch {
            var problem = AdminProblem(
                422, error.code == .secretKey ? "private_key" : "invalid", error.reason)
            problem.error = ("pointer", "/text", error.reason)
            throw problem
        }
    }

    private func add(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let text = try body.text("text")
        let description = body.value("description") ?? ""
        let app = try call.app()
        let pasted = try Self.read(text)
        guard let item = pasted.items.first, pasted.items.count == 1 else {
            throw AdminProblem.invalid(
                "text", "holds \(pasted.items.count) keys: add them one by one; the preview shows each as PEM"
            )
        }
        // A JWK Set with one key is stored as that key.
        let kept = item.source == .jwks ? item.key.jwk : text
        let key = try call.directory.addKey(kept, description: description, to: app.id)
        return try answer(call, key.id, status: 201)
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        try call.changing { call in
            let (app, key) = try key(call)
            try call.checkMatch(key.json, Self.tagged(app))
            if let _: String = body.value("slot") {
                try call.directory.makePrimary(keyID: key.id, of: app.id)
            }
            if let description: String = body.value("description") {
                try call.directory.describeKey(keyID: key.id, of: app.id, as: description)
            }
        }
        return try answer(call, call[1])
    }

    private func preview(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        let pasted = try Self.read(try body.text("text"))
        let token: String? = body.value("token")
        let apps = try call.directory.apps()
        let keys = pasted.items.map { item -> JSONValue in
            let users = apps.filter { $0.keys.contains { $0.id == item.key.thumbprint } }.map(\.id)
            let milliseconds = item.expiresAt.map { Milliseconds(seconds: $0).count }
            var warnings = Self.warnings(item.key, app)
            if let milliseconds, milliseconds < call.nowMilliseconds {
                warnings.append("The certificate has expired; only its key is used, its dates are not.")
            }
            let shown = Pasted(
                item: item, facts: Self.facts(item.key, app, warnings), users: users,
                isHere: users.contains(app.id),
                verifiesToken: token.map { Self.verifies($0, item.key, at: call.nowMilliseconds) })
            return Self.pastedShape.json(shown, with: ["expires_ms": milliseconds.map { .integer($0) }])
        }
        return call.answer([
            "keys": .array(keys), "problems": pasted.problems.jsonValue,
            "free_slots": .integer(Int64(AppDirectory.maximumKeys - app.keys.count)),
        ])
    }

    private static func verifies(_ token: String, _ key: PublicKey, at milliseconds: Int64) -> Bool {
        var policy = ClaimsPolicy()
        policy.algorithms = JWSAlgorithm.all
        let verifier = TokenVerifier(
            keys: KeyRing(entries: [KeyRing.Entry(id: key.thumbprint, key: key)]), policy: policy)
        let trimmed = String(token.filter { !$0.isWhitespace })
        return verifier.inspect(trimmed, at: Milliseconds(milliseconds).seconds).matchedKeyID != nil
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

    private static func facts(_ key: PublicKey, _ app: App, _ warnings: [String]) -> KeyInfo {
        KeyInfo(
            id: key.thumbprint, text: key.pem, key: key, algorithm: algorithm(of: key, app),
            warnings: warnings)
    }

    private static func deleteBlocked(_ key: AppKey, _ app: App) -> String? {
        guard key.slot == .primary, app.keys.count > 1 else { return nil }
        return "The primary key cannot be deleted while there is another: make another one primary first."
    }

    private func shown(_ app: App) throws -> [Resource] {
        let uses = try log.keyUses(of: app.id)
        return app.keys.map { key in
            let facts =
                (try? PublicKey(text: key.text)).map { Self.facts($0, app, Self.warnings($0, app)) }
                ?? KeyInfo(
                    id: key.id, text: key.text, key: nil, algorithm: nil,
                    warnings: ["The key cannot be read: delete it and add it again."])
            return Resource(
                kept: key, facts: facts, use: uses.first { $0.keyID == key.id },
                deleteBlocked: Self.deleteBlocked(key, app))
        }
    }
}
