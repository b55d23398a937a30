internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct WebhookRoutes: Sendable {
    let log: any EventLog
    let consumers: any EventConsumers
    let deliveries: any DeliveryLog
    let index = PseudonymIndex()

    /// The id in paths of the app's alert webhook, which can be tested and has deliveries too.
    private static let alerts = "alerts"

    var all: [AdminRoute] { endpoints + pauses + work }

    private var endpoints: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/webhooks", .viewer, "List an app's webhooks", .list(Self.webhook.shape)
            ) { call in
                let endpoints = try call.directory.webhooks.all(of: call[0])
                let shown = try shown(call, endpoints)
                return try call.page(
                    shown, at: { PageCursor($0.endpoint.createdMilliseconds, $0.endpoint.id) },
                    json: Self.webhook.json)
            },
            AdminRoute(
                "POST", "/apps/{app}/webhooks", .operator, "Create a webhook that receives an app's events",
                body: .object(
                    Self.changes.filter { $0.name != "url" } + [
                        .must("url", .text(longest: 2_048)), .may("secret", .text(longest: 200)),
                        .may("from", .choice(["end", "start"])),
                    ]),
                .json(Self.webhook.shape.with([.must("secret", .string)]), status: 201), answer: create),
            AdminRoute(
                "GET", "/apps/{app}/webhooks/{id}", .viewer, "Show a webhook", .json(Self.webhook.shape)
            ) { call in try answer(call, try call.directory.webhooks.endpoint(call[1], of: call[0])) },
            AdminRoute(
                "PATCH", "/apps/{app}/webhooks/{id}", .operator, "Change a webhook",
                body: .object(Self.changes), match: .required, .json(Self.webhook.shape), answer: change),
            AdminRoute.delete("/apps/{app}/webhooks/{id}", .operator, "Delete a webhook") { call in
                try call.directory.webhooks.delete(call[1], of: call[0])
            },
        ]
    }

    private var pauses: [AdminRoute] {
        WayRoutes.pauses(
            "/apps/{app}/webhooks/{id}",
            (
                "Pause deliveries to a webhook",
                "Resume deliveries to a webhook, and attempt the next one at once"
            ), Self.webhook.shape,
            answer: { try answer($0, try $0.directory.webhooks.endpoint($0[1], of: $0[0])) }
        ) { call, pause in
            try call.directory.webhooks.setPause(pause, of: call[1], of: call[0], at: call.nowMilliseconds)
        }
    }

    private var work: [AdminRoute] {
        [
            AdminRoute(
                "POST", "/apps/{app}/webhooks/{id}/rotate", .operator,
                "Give a webhook a new secret; for some hours the old one signs too",
                body: .object([.may("hours", .integer(0...168)), .may("secret", .text(longest: 200))]),
                .json(Self.webhook.shape.with([.must("secret", .string)]))
            ) { call in
                let body = try call.body()
                let secret = try call.directory.webhooks.rotateSecret(
                    of: call[1], of: call[0], to: body.value("secret"),
                    keepingOldFor: body.value("hours") ?? 24, at: call.nowMilliseconds)
                return try answer(
                    call, try call.directory.webhooks.endpoint(call[1], of: call[0]),
                    with: ["secret": .string(secret)])
            },
            AdminRoute(
                "POST", "/apps/{app}/webhooks/{id}/test", .operator,
                "Send a test to a webhook; the id alerts stands for the app's alert webhook",
                .json(.all(["message_id": .string]), status: 202), answer: test),
            AdminRoute(
                "POST", "/apps/{app}/webhooks/{id}/replay", .operator,
                "Deliver events to a webhook again, alongside new ones",
                body: .object([
                    .may("delivery", .text(longest: 64)), .may("from_seq", .integer(1...Int64.max)),
                    .may("to_seq", .integer(1...Int64.max)),
                ]), .json(.all(["message_id": .string]), status: 202), answer: replay),
            AdminRoute(
                "GET", "/apps/{app}/webhooks/{id}/deliveries", .viewer,
                "List attempts to deliver to a webhook, the newest first; alerts as the id means the app's "
                    + "alert webhook",
                .list(Self.delivery.shape), answer: listDeliveries),
        ]
    }

    // MARK: Shapes

    private struct Resource {
        let endpoint: WebhookEndpoint
        let user: String?
        let state: WayState
    }

    private static let changes = WebhookEndpoint.changeable

    private static let webhook = AnswerShape<Resource>(
        named: "Webhook",
        first: WebhookEndpoint.fields.filter { $0.name != "user" }.map { $0.of(\.endpoint) }
            + WayState.fields.map { $0.of(\.state) }, .init("user", .nullable(.string), \.user),
        .init("committed_seq", .count) { $0.state.progress?.committed ?? $0.endpoint.startSequence })

    private static let delivery = AnswerShape<DeliveryRecord>(
        named: "WebhookDelivery", .init("seq", \.sequence), .init("message_id", \.messageID),
        .init("kind", .choice(of: DeliveryRecord.Kind.self), \.kind.rawValue),
        .init("first_seq", \.firstSequence), .init("last_seq", \.lastSequence), .init("events", \.events),
        .init("attempt", \.attempt), .time("at_ms", \.atMilliseconds),
        .init("duration_ms", \.durationMilliseconds), .init("status", \.status), .init("error", \.error),
        .init("answer", \.answer))

    // MARK: Answers

    private func shown(_ call: AdminCall, _ endpoints: [WebhookEndpoint]) throws -> [Resource] {
        let mask = try call.userMask()
        // No mask, because the reasons of failed deliveries to webhooks contain neither paths nor URLs.
        let states = try WayState.all(.webhook, of: call[0], mask: .none, consumers, log)
        return endpoints.map { endpoint in
            var endpoint = endpoint
            endpoint.url = mask.destination(endpoint.url)
            endpoint.name = mask.filter(name: endpoint.name)
            endpoint.claim = mask.filter(name: endpoint.claim)
            return Resource(
                endpoint: endpoint, user: mask.user(endpoint.userID, of: call[0]),
                state: states(endpoint.id, endpoint.pause != nil))
        }
    }

    private func answer(
        _ call: AdminCall, _ endpoint: WebhookEndpoint, with more: BytewiseDictionary<JSONValue?> = [:],
        status: Int = 200
    ) throws -> HTTPResponse {
        guard let shown = try shown(call, [endpoint]).first else { return call.noContent }
        return call.answer(
            Self.webhook.json(shown, with: more), status: status, tag: Self.version(of: endpoint))
    }

    /// The content of the entity tag. Omits the progress, which is not a change, and the user id, because a hash would
    /// confirm a guessed id.
    private static func version(of endpoint: WebhookEndpoint) -> JSONValue {
        ["id": .string(endpoint.id), "revision": .integer(endpoint.revision)]
    }

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        if body.value("allow_private") ?? false {
            try call.checkPrivateAddress(try body.text("url"), before: nil)
        }
        // A webhook starts after the deleted events. Otherwise the deleted events would be reported as missed.
        var start = try ConsumerRoutes.answering {
            do throws(ConsumerFailure) {
                return try consumers.sequence(of: .start, in: call[0])
            } catch {
                // No gateway has run on the data directory yet.
                if error.code == .notFound { return Int64(0) }
                throw error
            }
        }
        if body.value("from") ?? "end" == "end" { start = max(start, try newestSequence(of: call[0])) }
        let made = try call.directory.webhooks.create(
            of: call[0], try members(call, body), secret: body.value("secret"), after: start,
            at: call.nowMilliseconds)
        return try answer(call, made.endpoint, with: ["secret": .string(made.secret)], status: 201)
    }

    private func members(_ call: AdminCall, _ body: AdminBody) throws -> JSONObject {
        var members = body.members
        if let user: String = body.value("user") {
            members["user"] = .string(
                try call.user(named: user, of: call[0], in: index) { last, isEnough in
                    try log.users(of: call[0], after: last, isEnough)
                })
        }
        return members
    }

    /// The sequence number of the app's newest event; 0 without one.
    private func newestSequence(of appID: String) throws -> Int64 {
        do throws(GatewayError) {
            var before: Int64?
            repeat {
                let page = try log.newest(EventQuery(appID: appID), before: before, limit: 1)
                if let newest = page.events.first { return newest.sequence }
                before = page.next
            } while before != nil
            return 0
        } catch {
            // No gateway has run on the data directory yet.
            if error.code == .notFound { return 0 }
            throw error
        }
    }

    private func change(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        _ = try call.directory.webhooks.endpoint(call[1], of: call[0])
        // Outside the transaction, because `members` may search the events for the user.
        let members = try members(call, body)
        try call.changing { call in
            let before = try call.directory.webhooks.endpoint(call[1], of: call[0])
            try call.checkMatch(Self.version(of: before))
            var after = before
            after.set(members)
            if after.allowsPrivateAddresses {
                try call.checkPrivateAddress(after.url, before: before.privateURL)
            }
            try call.directory.webhooks.change(call[1], of: call[0], members, at: call.nowMilliseconds)
        }
        return try answer(call, try call.directory.webhooks.endpoint(call[1], of: call[0]))
    }

    private func test(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        guard call[1] == Self.alerts else {
            let id = try call.directory.webhooks.request(
                .test, of: call[1], of: app.id, at: call.nowMilliseconds)
            return call.answer(["message_id": .string(id)], status: 202)
        }
        guard let id = try call.directory.alerts.queue(["type": "test"], of: app.id, at: call.nowMilliseconds)
        else { throw AdminProblem.notFound("the app has no alert webhook") }
        try call.directory.auditLog.note("webhook.test", Self.alerts, app: app.id)
        return call.answer(["message_id": .string(id)], status: 202)
    }

    private func replay(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let endpoint = try call.directory.webhooks.endpoint(call[1], of: call[0])
        var range: (first: Int64, last: Int64)?
        if let delivery: String = body.value("delivery") {
            let record = try deliveries.delivery(delivery, of: endpoint.id)
            guard let record, let first = record.firstSequence, let last = record.lastSequence else {
                throw AdminProblem.invalid("delivery", "is not a delivery of events to this webhook")
            }
            range = (first, last)
        } else if let first: Int64 = body.value("from_seq"), let last: Int64 = body.value("to_seq") {
            range = (first, last)
        }
        guard let range else {
            throw AdminProblem.invalid("delivery", "is missing; give it, or from_seq and to_seq")
        }
        guard range.first <= range.last else {
            throw AdminProblem.invalid("to_seq", "must not be less than from_seq")
        }
        let id = try call.directory.webhooks.request(
            .replay, of: endpoint.id, of: call[0], after: range.first - 1, through: range.last,
            at: call.nowMilliseconds)
        return call.answer(["message_id": .string(id)], status: 202)
    }

    private func listDeliveries(_ call: AdminCall) throws -> HTTPResponse {
        let app = try call.app()
        let id =
            call[1] == Self.alerts
            ? DeliveryRecord.alerts(of: app.id) : try call.directory.webhooks.endpoint(call[1], of: app.id).id
        let found = try deliveries.deliveries(
            of: id, before: try call.cursor()?.number, limit: call.limit + 1)
        return try call.page(read: found, at: { PageCursor($0.sequence) }) { record in
            var record = record
            // The response of an endpoint may contain users, so viewers do not see it.
            if call.identity.role < .operator { record.answer = "" }
            return Self.delivery.json(record)
        }
    }
}
