internal import CountersignCore
internal import CountersignJOSE

/// Apps and their write keys.
struct AppRoutes: Sendable {
    let activity: @Sendable (_ appID: String, _ nowMilliseconds: Int64) throws -> AppActivity
    let writeKeyUses: @Sendable () -> [String: Int64]

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps", .viewer, "List the apps", answer: list),
            AdminRoute("POST", "/apps", .operator, "Make an app", answer: create),
            AdminRoute("GET", "/apps/{app}", .viewer, "Show an app") { call in
                let app = try call.app()
                return call.answer(try json(app, call), tag: try Self.stable(app, call))
            },
            AdminRoute("PATCH", "/apps/{app}", .operator, "Change an app", answer: change),
            AdminRoute("GET", "/apps/{app}/write-keys", .viewer, "List an app's write keys") { call in
                let uses = writeKeyUses()
                return call.list(try call.directory.writeKeys(of: call[0]).map { Self.json($0, uses) })
            },
            AdminRoute("POST", "/apps/{app}/write-keys", .operator, "Make a write key") { call in
                let description = try call.body("description").optionalText("description", longest: 200) ?? ""
                let (entry, text) = try call.directory.createWriteKey(for: call[0], description: description)
                guard case .object(var members) = Self.json(entry, [:]) else { preconditionFailure() }
                members["write_key"] = .string(text)
                return call.answer(.object(members), status: 201)
            },
            AdminRoute("DELETE", "/apps/{app}/write-keys/{id}", .operator, "Delete a write key") { call in
                try call.directory.deleteWriteKey(id: call[1], of: call[0])
                return call.noContent
            },
        ]
    }

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let limit = try call.limit()
        let after = call.query("cursor") ?? ""
        let apps = try call.directory.apps().filter { $0.id > after }
        let page = apps.prefix(limit)
        return call.list(
            try page.map { try json($0, call) }, next: apps.count > limit ? page.last?.id : nil)
    }

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body("id", "name")
        let name = try body.optionalText("name", longest: 200)
        let (app, writeKey) = try call.directory.createApp(id: try body.text("id"), name: name)
        return call.answer(
            ["app": try json(app, call), "write_key": .string(writeKey)], status: 201,
            tag: try Self.stable(app, call))
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body("name", "origins", "retention_days", "retention_bytes")
        let app = try call.app()
        try call.checkMatch(try Self.stable(app, call))
        var rules = try call.directory.rules(of: app.id)
        if let origins = try body.texts("origins") { rules.origins = origins }
        if body.has("retention_days") {
            rules.retentionDays = try body.integer("retention_days", 1...36_500).map(Int.init)
        }
        if body.has("retention_bytes") {
            rules.retentionBytes = try body.integer("retention_bytes", 1...(1 << 50)).map(Int.init)
        }
        let name = try body.optionalText("name", longest: 200)
        if rules != (try call.directory.rules(of: app.id)) { try call.directory.setRules(rules, of: app.id) }
        if let name, name != app.name { try call.directory.renameApp(app.id, to: name) }
        let changed = try call.app()
        return call.answer(try json(changed, call), tag: try Self.stable(changed, call))
    }

    private func json(_ app: App, _ call: AdminCall) throws -> JSONValue {
        let activity = try activity(app.id, call.nowMilliseconds)
        guard case .object(var members) = try Self.stable(app, call) else { preconditionFailure() }
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
        guard case .object(var members) = try call.directory.rules(of: app.id).json else {
            preconditionFailure()
        }
        members["id"] = .string(app.id)
        members["name"] = .string(app.name)
        members["created_ms"] = .integer(app.createdMilliseconds)
        return .object(members)
    }

    private static func json(_ key: WriteKey, _ uses: [String: Int64]) -> JSONValue {
        [
            "id": .string(key.id), "description": .string(key.description),
            "created_ms": .integer(key.createdMilliseconds),
            "last_used_ms": uses[key.id].map { .integer($0) } ?? .null,
        ]
    }
}
