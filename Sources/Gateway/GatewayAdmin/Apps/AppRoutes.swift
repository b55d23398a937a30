internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct AppRoutes: Sendable {
    /// The activity of an app, or of each app, in the last 24 hours; nil if the counts cannot be read now.
    let activity: @Sendable (_ appID: String?, _ nowMilliseconds: Int64) -> BytewiseDictionary<AppActivity>?
    /// The last use of each write key since this gateway's start, by key id; nil in a local command.
    let writeKeyUses: (@Sendable () -> BytewiseDictionary<Int64>)?
    /// The ids of the apps that have customer profiles.
    let customers: @Sendable () throws(GatewayError) -> BytewiseSet

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps", .viewer, "List the apps", .list(Self.app.shape)) { call in
                let activity = activity(nil, call.nowMilliseconds)
                let rules = try call.directory.settings(AppRules.self)
                let features = try features(call)
                return try call.page(try call.directory.apps(), at: { PageCursor(0, $0.id) }) { app in
                    Self.app.json(Resource(app, rules[app.id] ?? AppRules(), activity, features))
                }
            },
            AdminRoute(
                "POST", "/apps", .operator, "Create an app",
                body: .object([.must("id", .text(longest: 64)), .may("name", .text(longest: 200))]),
                .json(.all(["app": Self.app.shape, "write_key": .string]), status: 201), answer: create),
            AdminRoute("GET", "/apps/{app}", .viewer, "Show an app", .json(Self.app.shape)) { call in
                try answer(call, call[0])
            },
            AdminRoute(
                "PATCH", "/apps/{app}", .operator, "Change an app", body: Self.changes, match: .required,
                .json(Self.app.shape), answer: change),
            AdminRoute(
                "DELETE", "/apps/{app}", .owner, "Delete an app and all its data",
                body: .object([.must("confirm", .text(longest: 64))]),
                .json(Self.deletion.shape, status: 202), answer: delete),
            AdminRoute(
                "GET", "/app-deletions", .viewer, "List the apps that are being deleted",
                .list(Self.deletion.shape)
            ) { call in
                try call.page(
                    try call.directory.deletions(),
                    at: { PageCursor($0.requestedMilliseconds, $0.appID) }, json: Self.deletion.json)
            },
            AdminRoute(
                "GET", "/apps/{app}/write-keys", .viewer, "List an app's write keys",
                .list(Self.writeKey.shape)
            ) { call in
                try call.page(
                    try keys(call), at: { PageCursor($0.createdMilliseconds, $0.id) },
                    json: { Self.writeKey.json(WriteKeyResource($0, call)) })
            },
            AdminRoute(
                "POST", "/apps/{app}/write-keys", .operator, "Create a write key",
                body: .object([.may("description", .text(longest: 200))]),
                .json(Self.writeKey.shape, status: 201)
            ) { call in
                let (key, _) = try call.directory.createWriteKey(
                    for: call[0], description: try call.body().value("description") ?? "")
                return call.answer(Self.writeKey.json(WriteKeyResource(key, call)), status: 201)
            },
            AdminRoute(
                "GET", "/apps/{app}/write-keys/{id}", .viewer, "Show a write key",
                .json(Self.writeKey.shape)
            ) { call in
                guard let key = try keys(call).first(where: { $0.id == call[1] }) else {
                    throw AdminProblem.notFound("the app has no such write key")
                }
                return call.answer(Self.writeKey.json(WriteKeyResource(key, call)))
            },
            AdminRoute.delete(
                "/apps/{app}/write-keys/{id}", .operator,
                "Delete a write key; the last one, or one used within 30 days, needs its id in confirm",
                query: [.may("confirm", .text(longest: 64))]
            ) { call in
                try call.changing(deleteWriteKey)
            },
        ]
    }

    // MARK: Shapes

    private struct Resource {
        let app: App
        let rules: AppRules
        /// Nil if the counts cannot be read now.
        let activity: AppActivity?
        let features: [String]

        init(
            _ app: App, _ rules: AppRules, _ activity: BytewiseDictionary<AppActivity>?, _ features: Features
        ) {
            self.app = app
            self.rules = rules
            self.features = features.filter { $0.apps.contains(app.id) }.map(\.name)
            self.activity = activity.map { $0[app.id] ?? AppActivity() }
        }
    }

    /// The optional features, each with the apps that use it.
    private typealias Features = [(name: String, apps: BytewiseSet)]

    private func features(_ call: AdminCall) throws -> Features {
        let used = try call.directory.appsWithFeatures()
        let sources = try call.directory.settings(KeySources.self)
        return [
            ("bloomreach", used.bloomreach), ("customers", try customers()),
            ("key_sources", BytewiseSet(sources.filter { !$0.value.all.isEmpty }.map(\.key))),
            ("token_service", used.tokenService),
        ]
    }

    private static let stable = AnswerShape<Resource>(
        first: AppRules.fields.map { $0.of(\.rules) }, .init("id", \.app.id), .init("name", \.app.name),
        .time("created_ms", \.app.createdMilliseconds))

    private static let app = AnswerShape<Resource>(
        named: "App", first: stable.fields, .init("enforcement", \.app.enforcement),
        .init("keys", \.app.keys.count), .init("features", \.features),
        .time("last_request_ms", \.activity?.lastMilliseconds),
        .object("last_24h", activityShape, \.activity))

    private static let activityShape = AnswerShape<AppActivity>(
        .init("requests", \.requests), .init("verified", \.verified), .init("rejected", \.rejected),
        .init("warned", \.warned),
        .list("hours", hour, \.hours))

    private static let hour = AnswerShape<AppActivity.Hour>(
        .init("requests", \.requests), .init("failures", \.failures))

    private static let changes = JSONShape.object(
        [.may("name", .text(longest: 200))] + AppRules.taken)

    /// A write key as the caller may see it. Viewers see only its prefix.
    private struct WriteKeyResource {
        let key: WriteKey
        let text: String?

        init(_ key: WriteKey, _ call: AdminCall) {
            self.key = key
            text = call.identity.role >= .operator ? key.text : nil
        }
    }

    private static let writeKey = AnswerShape<WriteKeyResource>(
        named: "WriteKey", .init("id", \.key.id), .init("prefix", \.key.prefix), .init("write_key", \.text),
        .init("description", \.key.description), .time("created_ms", \.key.createdMilliseconds),
        .time("last_used_ms", \.key.usedMilliseconds))

    /// Deleting a key used within this time needs a confirmation, because shipped apps probably still use it.
    private static let usedKeyMilliseconds: Int64 = 30 * 86_400_000

    private static let deletion = AnswerShape<AppDeletion>(
        named: "AppDeletion", .init("app", \.appID), .time("requested_ms", \.requestedMilliseconds),
        .time("erased_ms", \.erasedMilliseconds), .time("free_ms", \.freeMilliseconds))

    // MARK: Answers

    private func delete(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        guard try call.body().text("confirm") == app.id else {
            throw AdminProblem.invalid("confirm", "must be the id of the app that is to be deleted")
        }
        return call.answer(Self.deletion.json(try call.directory.deleteApp(id: app.id)), status: 202)
    }

    private func deleteWriteKey(_ call: AdminCall) throws {
        let keys = try keys(call)
        if let key = keys.first(where: { $0.id == call[1] }), call.query("confirm") != key.id,
            let reason = keys.count == 1 ? Self.lastKey : useOf(key, call.nowMilliseconds)
        {
            throw AdminProblem(409, "confirmation_required", "\(reason); confirm it with ?confirm=ID")
        }
        try call.directory.deleteWriteKey(id: call[1], of: call[0])
    }

    private static let lastKey = "it is the app's last write key: without it no app can send"

    /// Returns why apps may still send with the key; nil if certainly no app has used the key for 30 days.
    private func useOf(_ key: WriteKey, _ now: Int64) -> String? {
        guard let used = key.usedMilliseconds else {
            // A running or killed gateway may not have stored the first use.
            return writeKeyUses == nil
                ? "no use of it is stored here: apps that send with it would be rejected" : nil
        }
        guard used > now - Self.usedKeyMilliseconds else { return nil }
        return "it was used at \(RFC3339.text(milliseconds: used)): apps that send with it would be rejected"
    }

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let (app, writeKey) = try call.directory.createApp(
            id: try body.text("id"), name: body.value("name"))
        let shown = try shown(app, call)
        return call.answer(
            ["app": Self.app.json(shown), "write_key": .string(writeKey)], status: 201,
            tag: Self.stable.json(shown))
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        try call.changing { call in
            let app = try call.app()
            let before = try call.directory.rules(of: app.id)
            try call.checkMatch(Self.stable.json(Resource(app, before, nil, [])))
            var rules = before
            rules.set(body.members)
            try call.directory.setRules(rules, of: app.id)
            if let name: String = body.value("name"), name != app.name {
                try call.directory.renameApp(app.id, to: name)
            }
        }
        return try answer(call, call[0])
    }

    private func answer(_ call: AdminCall, _ id: String) throws -> HTTPResponse {
        let shown = try shown(try call.directory.app(id: id), call)
        return call.answer(Self.app.json(shown), tag: Self.stable.json(shown))
    }

    private func shown(_ app: App, _ call: AdminCall) throws -> Resource {
        Resource(
            app, try call.directory.rules(of: app.id), activity(app.id, call.nowMilliseconds),
            try features(call))
    }

    /// The write keys of the app, with the uses that the gateway has not stored yet.
    private func keys(_ call: AdminCall) throws -> [WriteKey] {
        let uses = writeKeyUses?() ?? [:]
        return try call.directory.writeKeys(of: call[0]).map { key in
            var key = key
            key.usedMilliseconds = [key.usedMilliseconds, uses[key.id]].compactMap { $0 }.max()
            return key
        }
    }
}
