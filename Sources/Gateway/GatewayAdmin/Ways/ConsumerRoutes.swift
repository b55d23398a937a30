internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Lists, creates, moves and deletes consumers. Only a reader's token allows reading and acknowledging.
struct ConsumerRoutes: Sendable {
    let log: any EventLog
    let consumers: any EventConsumers
    let index = PseudonymIndex()

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/consumers", .viewer, "List an app's event consumers",
                .list(Self.shape.shape)
            ) { call in
                let app = try call.app().id
                let mask = try call.userMask()
                let found = try Self.answering { try consumers.all(.pull, of: app) }
                let shown = try shown(found, mask)
                return try call.page(
                    shown, at: { PageCursor($0.consumer.createdMilliseconds, $0.consumer.id.name) },
                    json: { Self.shape.json($0) })
            },
            AdminRoute(
                "POST", "/apps/{app}/consumers", .operator, "Create an event consumer",
                body: .object(
                    [
                        .must("name", .text(longest: 64)), .may("filter", Self.filter),
                        .may("partitions", .integer(1...Int64(EventConsumerSettings.mostPartitions))),
                        .may("hold_days", .integer(1...Int64(EventConsumerSettings.longestHold))),
                    ] + AdminCall.startMembers), .json(Self.shape.shape, status: 201), answer: create),
            AdminRoute(
                "GET", "/apps/{app}/consumers/{name}", .viewer, "Show an event consumer and its lag",
                .json(Self.shape.shape)
            ) { call in try answer(call, try Self.answering { try consumers.find(try id(call)) }) },
            WayRoutes.seek(
                "/apps/{app}/consumers/{name}", "Move an event consumer and end its leases",
                Self.shape.shape, in: log
            ) { call, _, start in
                let moved = try Self.answering { try consumers.seek(try id(call), to: start) }
                try call.directory.auditLog.note(
                    "consumer.seek", moved.id.name, app: moved.id.appID,
                    after: .object(try call.body().members))
                return try answer(call, moved)
            },
            AdminRoute.delete("/apps/{app}/consumers/{name}", .operator, "Delete an event consumer") { call in
                let id = try id(call)
                try Self.answering { try consumers.delete(id) }
                try call.directory.auditLog.note("consumer.delete", id.name, app: id.appID, after: nil)
            },
        ]
    }

    private struct Resource: Sendable {
        let consumer: EventConsumer
        let positions: EventPositions
        let state: WayState
    }

    private static let own: [JSONField<Resource>] = EventConsumer.shape.fields.filter { field in
        !WayState.fields.contains { $0.name == field.name }
    }.map { $0.of { (shown: Resource) in (consumer: shown.consumer, positions: shown.positions) } }

    private static let shape = AnswerShape<Resource>(
        named: "Consumer", first: own + WayState.fields.map { $0.of(\.state) })

    private func shown(_ found: [EventConsumer], _ mask: UserMask) throws -> [Resource] {
        let states = try WayState.states(of: found, .pull, mask: mask, consumers, log)
        let positions = try log.positions()
        return found.map {
            Resource(consumer: masked($0, mask), positions: positions, state: states($0.id.name, false))
        }
    }

    private static let filter = JSONShape.object([
        .may("verdict", .choice(VerdictFilter.words)), .may("type", .choice(EventKind.storedWords)),
        .may("name", .text(longest: 512)), .may("user", .text(longest: 512)),
        .may("claim", .text(longest: 512)),
    ])

    private func id(_ call: AdminCall) throws -> EventConsumerID {
        EventConsumerID(appID: try call.app().id, name: call[1])
    }

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app().id
        let days: Int64? = body.value("hold_days")
        var filter = EventFilter()
        if case .object(let members)? = body.members["filter"] {
            func text(_ name: String) -> String? {
                if case .string(let text)? = members[name] { text } else { nil }
            }
            filter = EventFilter(
                verdict: text("verdict").flatMap { VerdictFilter($0) }, type: text("type"),
                name: text("name"),
                userID: try text("user").map { user in
                    try call.user(named: user, of: app, in: index) { last, isEnough in
                        try log.users(of: app, after: last, isEnough)
                    }
                },
                claim: try text("claim").map {
                    guard let claim = ClaimFilter($0) else {
                        throw GatewayError(.invalid, "claim \(ClaimFilter.problem)")
                    }
                    return claim
                })
        }
        let partitions: Int64? = body.value("partitions")
        let settings = EventConsumerSettings(
            filter: filter, partitions: Int(partitions ?? 1), holdDays: days.map { Int($0) })
        let start = try call.eventStart(of: app, in: log) ?? .start
        let made = try Self.answering {
            try consumers.create(
                EventConsumerID(appID: app, name: try body.text("name")), settings, from: start)
        }
        try call.directory.auditLog.note(
            "consumer.create", made.id.name, app: app,
            after: .object(body.members.filter { $0.key != "filter" }))
        return try answer(call, made, status: 201)
    }

    private func masked(_ consumer: EventConsumer, _ mask: UserMask) -> EventConsumer {
        var consumer = consumer
        consumer.settings.filter.userID = mask.user(consumer.settings.filter.userID, of: consumer.id.appID)
        consumer.settings.filter.name = mask.filter(name: consumer.settings.filter.name)
        consumer.settings.filter.claim = mask.filter(name: consumer.settings.filter.claim?.text)
            .map { ClaimFilter(shown: $0) }
        return consumer
    }

    private func answer(
        _ call: AdminCall, _ consumer: EventConsumer, status: Int = 200
    ) throws -> HTTPResponse {
        guard let shown = try shown([consumer], try call.userMask()).first else { return call.noContent }
        return call.answer(Self.shape.json(shown), status: status)
    }

    static func answering<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch let failure as ConsumerFailure {
            let status =
                switch failure.code {
                case .notFound: 404
                case .exists, .tooMany, .leaseExpired: 409
                case .invalid, .notInLease: 422
                case .storage: 503
                }
            throw AdminProblem(status, failure.code.rawValue, failure.reason)
        }
    }
}
