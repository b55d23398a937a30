internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Lists, creates, moves and deletes the consumers with which backends follow an app's events. Reading and
/// acknowledging is possible only with a reader's token.
struct ConsumerRoutes: Sendable {
    let log: any EventLog
    let consumers: any EventConsumers

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/consumers", .viewer, "List an app's event consumers",
                .list(Self.shape)
            ) { call in
                let app = try call.app().id
                let mask = try call.userMask()
                let found = try Self.answering { try consumers.all(.pull, of: app) }
                let positions = try log.positions()
                return try call.page(
                    found, at: { PageCursor($0.createdMilliseconds, $0.id.name) },
                    json: { masked($0, mask).json(positions) })
            },
            AdminRoute(
                "POST", "/apps/{app}/consumers", .operator, "Create an event consumer",
                body: .object(
                    [
                        .must("name", .text(longest: 64)), .may("filter", Self.filter),
                        .may("partitions", .integer(1...Int64(EventConsumerSettings.mostPartitions))),
                        .may("hold_days", .integer(1...Int64(EventConsumerSettings.longestHold))),
                    ] + AdminCall.startMembers), .json(Self.shape, status: 201), answer: create),
            AdminRoute(
                "GET", "/apps/{app}/consumers/{name}", .viewer, "Show an event consumer and its lag",
                .json(Self.shape)
            ) { call in
                try answer(call, try Self.answering { try consumers.find(try id(call)) })
            },
            AdminRoute(
                "POST", "/apps/{app}/consumers/{name}/seek", .operator,
                "Move an event consumer and end its leases",
                body: .object(AdminCall.startMembers),
                .json(Self.shape)
            ) { call in
                guard let start = try call.eventStart(of: try call.app().id, in: log) else {
                    throw AdminProblem.invalid("from", "is missing; give it, time_ms or position")
                }
                let moved = try Self.answering { try consumers.seek(try id(call), to: start) }
                try call.directory.auditLog.note(
                    "consumer.seek", moved.id.name, app: moved.id.appID,
                    after: .object(try call.body().members))
                return try answer(call, moved)
            },
            AdminRoute(
                "DELETE", "/apps/{app}/consumers/{name}", .operator, "Delete an event consumer", .nothing
            ) { call in
                let id = try id(call)
                try Self.answering { try consumers.delete(id) }
                try call.directory.auditLog.note("consumer.delete", id.name, app: id.appID, after: nil)
                return call.noContent
            },
        ]
    }

    private static let shape = EventConsumer.shape.shape

    private static let filter = JSONShape.object([
        .may("verdict", .choice(VerdictFilter.words)), .may("type", .choice(EventKind.storedWords)),
        .may("name", .text(longest: 512)), .may("user", .text(longest: 512)),
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
                userID: text("user"))
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
        return consumer
    }

    private func answer(
        _ call: AdminCall, _ consumer: EventConsumer, status: Int = 200
    ) throws -> HTTPResponse {
        let mask = try call.userMask()
        return call.answer(masked(consumer, mask).json(try log.positions()), status: status)
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
