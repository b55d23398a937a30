internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Apps and their write keys.
struct AppRoutes: Sendable {
    /// What an app, or each, had to do in the last 24 hours.
    let activity: @Sendable (_ appID: String?, _ nowMilliseconds: Int64) throws -> [String: AppActivity]
    let writeKeyUses: @Sendable () throws -> [String: Int64]

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps", .viewer, "List the apps", .list(Self.app)) { call in
                let activity = try activity(nil, call.nowMilliseconds)
                let rules = try call.directory.settings(AppRules.self)
                return try call.page(try call.directory.apps(), at: { PagePosition(0, $0.id) }) { app in
                    Self.json(app, rules[app.id] ?? AppRules(), activity[app.id])
                }
            },
            AdminRoute(
                "POST", "/apps", .operator, "Make an app",
                body: .object([.must("id", .text(longest: 64)), .may("name", .text(longest: 200))]),
                .json(.all(["app": Self.app, "write_key": .string]), status: 201), answer: create),
            AdminRoute("GET", "/apps/{app}", .viewer, "Show an app", .json(Self.app)) { call in
                let app = try call.app()
                return call.answer(try json(app, call), tag: try Self.stable(app, call))
            },
            AdminRoute(
                "PATCH", "/apps/{app}", .operator, "Change an app", body: Self.changes, match: .required,
                .json(Self.app), answer: change),
            AdminRoute(
                "GET", "/apps/{app}/write-keys", .viewer, "List an app's write keys", .list(Self.writeKey)
            ) { call in
                let uses = try writeKeyUses()
                return try call.page(
                    try call.directory.writeKeys(of: call[0]),
                    at: { PagePosition($0.createdMilliseconds, $0.id) }
                ) { Self.json($0, uses) }
            },
            AdminRoute(
                "POST", "/apps/{app}/write-keys", .operator, "Make a write key",
                body: .object([.may("description", .text(longest: 200))]),
                .json(Self.writeKey.with([.must("write_key", .string)]), status: 201), answer: createWriteKey),
            AdminRoute(
                "GET", "/apps/{app}/write-keys/{id}", .viewer, "Show a write key's entry",
                .json(Self.writeKey)
            ) { call in
                let key = try Self.key(call)
                return call.answer(Self.json(key, try writeKeyUses()), tag: key.json)
            },
            AdminRoute(
                "DELETE", "/apps/{app}/write-keys/{id}", .operator, "Delete a write key", match: .optional,
                .nothing
            ) { call in
                try call.checkMatch(Self.key(call).json)
                try call.directory.deleteWriteKey(id: call[1], of: call[0])
                return call.noContent
            },
        ]
    }

    // MARK: Shapes

    static let app = JSONShape.named(
        "App",
        .all([
            "id": .string, "name": .string, "created_ms": .milliseconds,
            "enforcement": .choice(of: Enforcement.self), "keys": .count,
            "last_request_ms": .nullable(.milliseconds),
            "last_24h": .all(["requests": .count, "rejected": .count, "warned": .count]),
        ]).with(AppRules.shown))

    private static let changes = JSONShape.object([.may("name", .text(longest: 200))] + AppRules.taken)

    private static let writeKey = JSONShape.named(
        "WriteKey",
        .all([
            "id": .string, "description": .string, "created_ms": .milliseconds,
            "last_used_ms": .nullable(.milliseconds),
        ]))

    // MARK: Answers

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let (app, writeKey) = try call.directory.createApp(
            id: try body.text("id"), name: body.optionalText("name"))
        return call.answer(
            ["app": try json(app, call), "write_key": .string(writeKey)], status: 201,
            tag: try Self.stable(app, call))
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app()
        try call.checkMatch(try Self.stable(app, call))
        var rules = try call.directory.rules(of: app.id)
        rules.set(body.members)
        try call.directory.setRules(rules, of: app.id)
        if let name = body.optionalText("name"), name != app.name {
            try call.directory.renameApp(app.id, to: name)
        }
        let changed = try call.app()
        return call.answer(try json(changed, call), tag: try Self.stable(changed, call))
    }

    private func createWriteKey(_ call: AdminCall) throws -> HTTPResponse {
        let description = try call.body().optionalText("description") ?? ""
        let (entry, text) = try call.directory.createWriteKey(for: call[0], description: description)
        guard case .object(var members) = Self.json(entry, [:]) else { preconditionFailure() }
        members["write_key"] = .string(text)
        return call.answer(.object(members), status: 201, tag: entry.json)
    }

    private func json(_ app: App, _ call: AdminCall) throws -> JSONValue {
        Self.json(
            app, try call.directory.rules(of: app.id), try activity(app.id, call.nowMilliseconds)[app.id])
    }

    private static func json(_ app: App, _ rules: AppRules, _ activity: AppActivity?) -> JSONValue {
        let activity = activity ?? AppActivity()
        var members = stable(app, rules)
        members["enforcement"] = .string(app.enforcement.rawValue)
        members["keys"] = .integer(Int64(app.keys.count))
        members["last_request_ms"] = activity.lastMilliseconds.map { .integer($0) } ?? .null
        members["last_24h"] = [
            "requests": .integer(Int64(activity.requests)), "rejected": .integer(Int64(activity.rejected)),
            "warned": .integer(Int64(activity.warned)),
        ]
        return .object(members)
    }

    /// What only an operator changes.
    private static func stable(_ app: App, _ call: AdminCall) throws -> JSONValue {
        .object(stable(app, try call.directory.rules(of: app.id)))
    }

    private static func stable(_ app: App, _ rules: AppRules) -> [String: JSONValue] {
        var members = rules.members
        members["id"] = .string(app.id)
        members["name"] = .string(app.name)
        members["created_ms"] = .integer(app.createdMilliseconds)
        return members
    }

    private static func key(_ call: AdminCall) throws -> WriteKey {
        guard let key = try call.directory.writeKeys(of: call[0]).first(where: { $0.id == call[1] }) else {
            throw AdminProblem.notFound("the app has no such write key")
        }
        return key
    }

    private static func json(_ key: WriteKey, _ uses: [String: Int64]) -> JSONValue {
        guard case .object(var members) = key.json else { preconditionFailure() }
        members["created_ms"] = .integer(key.createdMilliseconds)
        let used = max(uses[key.id] ?? 0, key.usedMilliseconds ?? 0)
        members["last_used_ms"] = used > 0 ? .integer(used) : .null
        return .object(members)
    }
}
