internal import CountersignCore
internal import CountersignJOSE
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct ProjectRoutes: Sendable {
    var all: [AdminRoute] { settings + items }

    private var settings: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/project", .viewer,
                "Show an app's settings for clients of the Bloomreach dialect", .json(Self.project.shape)
            ) { call in
                var project = try call.directory.projects.project(of: call[0])
                if let url = project.settings.webhook?.url {
                    project.settings.webhook?.url = try call.userMask().destination(url)
                }
                return call.answer(Self.project.json(project), tag: project.settings.json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/project", .operator,
                "Change an app's settings for clients of the Bloomreach dialect",
                body: .object(
                    ProjectSettings.taken + [.ignored("private_keys", .list(Self.privateKey.shape))]),
                match: .required, .json(Self.project.shape.with([.may("webhook_secret", .string)]))
            ) { try $0.changing(set) },
            AdminRoute.delete(
                "/apps/{app}/project/sync-tokens", .operator, "Make clients fetch their whole App Inbox again"
            ) { call in
                try call.directory.projects.endSyncTokens(of: call[0])
            },
            AdminRoute(
                "POST", "/apps/{app}/project/private-keys", .operator,
                "Add a private key whose holder may sign customer tokens",
                body: .object([.must("id", .text(longest: 128)), .may("secret", .text(longest: 1_024))]),
                .json(.object([.must("id", .string), .may("secret", .string)]), status: 201)
            ) { call in
                let body = try call.body()
                let given: String? = body.value("secret")
                let secret = try call.directory.projects.addCustomerTokenKey(
                    id: try body.text("id"), secret: given, to: call[0])
                var members: JSONObject = ["id": .string(try body.text("id"))]
                if given == nil { members["secret"] = .string(secret) }
                return call.answer(.object(members), status: 201)
            },
            AdminRoute.delete("/apps/{app}/project/private-keys/{id}", .operator, "Delete a private key") {
                call in
                try call.directory.projects.deleteCustomerTokenKey(id: call[1], of: try call.app().id)
            },
        ]
    }

    private var items: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/project/items/{kind}", .viewer,
                "List in-app messages, consent categories or inbox messages as clients get them",
                .list(.map(.any))
            ) { call in
                let items = try Self.items(call)
                return try call.page(items, at: { PageCursor(0, $0.id) }, json: \.json)
            },
            AdminRoute(
                "GET", "/apps/{app}/project/items/{kind}/{id}", .viewer,
                "Show an in-app message, consent category or inbox message", .json(.map(.any))
            ) { call in
                guard let item = try Self.item(call) else { throw Self.noItem }
                return call.answer(item.json, tag: item.json)
            },
            AdminRoute(
                "PUT", "/apps/{app}/project/items/{kind}/{id}", .operator,
                "Add or replace an in-app message, consent category or inbox message", body: .map(.any),
                match: .requiredToReplace, .json(.map(.any))
            ) { try $0.changing(put) },
            AdminRoute.delete(
                "/apps/{app}/project/items/{kind}/{id}", .operator,
                "Delete an in-app message, consent category or inbox message", match: .optional
            ) { call in
                try call.changing { call in
                    guard let item = try Self.item(call) else { throw Self.noItem }
                    try call.checkMatch(item.json)
                    if let kind = try Self.kind(call) {
                        try call.directory.projects.remove(kind, id: item.id, from: call[0])
                    } else {
                        try call.directory.projects.removeInboxMessage(id: item.id, from: call[0])
                    }
                }
            },
        ]
    }

    // MARK: Shapes

    private static let privateKey = AnswerShape<CustomerTokenKey>(.init("id", \.id))

    private static let project = AnswerShape<Project>(
        named: "Project", first: ProjectSettings.fields.map { $0.of(\.settings) },
        .list("private_keys", privateKey, \.customerTokenKeys))

    // MARK: Answers

    private func set(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let current = try call.directory.setting(ProjectSettings.self, of: call[0])
        try call.checkMatch(current.json)
        var settings = current
        settings.replace(with: body.members, for: call[0])
        var made: String?
        if let given = body.members["webhook"]?.members, let webhook = settings.webhook {
            if webhook.allowsPrivateAddresses {
                try call.checkPrivateAddress(webhook.url, before: current.webhook?.privateURL)
            }
            let secret = given["secret"].flatMap { String(jsonValue: $0) }
            if secret == nil, current.webhook == nil { made = PushWebhook.newSecret() }
            // `keeping` is the current secret, used if there is no new one.
            settings.webhook = try PushWebhook(
                url: webhook.url, secret: secret ?? made, keeping: current.webhook?.secret ?? [],
                allowsPrivateAddresses: webhook.allowsPrivateAddresses)
        }
        try call.directory.setProject(settings, for: call[0])
        let project = try call.directory.projects.project(of: call[0])
        return call.answer(
            Self.project.json(project, with: ["webhook_secret": made.map { .string($0) }]),
            tag: project.settings.json)
    }

    /// Nil for inbox messages, which are stored separately.
    private static func kind(_ call: AdminCall) throws -> ProjectItem.Kind? {
        switch call[1] {
        case "in-app-message": .inAppMessage
        case "consent-category": .consentCategory
        case "inbox-message": nil
        default:
            throw AdminProblem.notFound("the kinds are in-app-message, consent-category and inbox-message")
        }
    }

    private static let noItem = AdminProblem.notFound("the app has no such item")

    private static func items(_ call: AdminCall) throws -> [ProjectItem] {
        let kind = try kind(call)
        // Hidden from viewers, because a message may name a user.
        if kind == nil { try call.checkSeesContent("reading inbox messages") }
        let project = try call.directory.projects.project(of: call[0])
        if let kind { return project.items(kind) }
        return project.inbox.all.map { ProjectItem(id: $0.id, members: $0.members) }
    }

    private static func item(_ call: AdminCall) throws -> ProjectItem? {
        try items(call).first { $0.id == call[2] }
    }

    private func put(_ call: AdminCall) throws -> HTTPResponse {
        let kind = try Self.kind(call)
        var members = try call.body().members
        let id = members["id"] ?? .string(call[2])
        guard id == .string(call[2]) else {
            throw AdminProblem.invalid("id", "must be the one in the path, or omitted")
        }
        members["id"] = id
        let current = try Self.item(call)
        try call.checkMatch(current?.json)
        let text = String(decoding: JSONValue.object(members).bytes, as: UTF8.self)
        if let kind {
            try call.directory.projects.put(kind, json: text, in: call[0])
        } else {
            _ = try call.directory.projects.putInboxMessage(json: text, in: call[0])
        }
        guard let item = try Self.item(call) else { throw Self.noItem }
        return call.answer(item.json, tag: item.json)
    }
}
