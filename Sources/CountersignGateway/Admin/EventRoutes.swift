internal import CountersignCore

/// Stored events.
struct EventRoutes: Sendable {
    let dataDirectory: String

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/events", .viewer, "List events, the newest first", query: Self.filters,
                .list(Self.event), answer: list),
            AdminRoute(
                "GET", "/apps/{app}/events/export", .viewer, "Export events, the oldest first",
                query: Self.filters + [Export.format], .file(Export.mediaTypes), answer: export),
        ]
    }

    private static let filters: [AdminRoute.Parameter] = [
        .init("user", .text(longest: 512)), .init("message_id", .text(longest: 512)),
        .init("type", .text(longest: 64)), .init("name", .text(longest: 512)),
        .init("from_ms", .milliseconds), .init("to_ms", .milliseconds), .unmask,
    ]

    private static let event = AdminType.named(
        "Event",
        .all([
            "seq": .count, "message_id": .string, "type": .string, "user_id": .nullable(.string),
            "anonymous_id": .nullable(.string), "name": .nullable(.string),
            "timestamp_ms": .integer(.min ... .max),
            "received_ms": .milliseconds, "body": .any,
        ]))

    private func query(_ call: AdminCall) throws -> EventQuery {
        var query = EventQuery(appID: try call.app().id)
        query.userID = try call.user(of: query.appID) { isEnough in
            try EventReader(dataDirectory: dataDirectory).users(of: query.appID, isEnough)
        }
        query.messageID = call.query("message_id")
        query.type = call.query("type")
        query.name = call.query("name")
        query.fromMilliseconds = call.integer("from_ms")
        query.toMilliseconds = call.integer("to_ms")
        if let from = query.fromMilliseconds, let to = query.toMilliseconds, from >= to {
            throw AdminProblem.invalidParameter("from_ms", "must be less than to_ms")
        }
        return query
    }

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let query = try query(call)
        let mask = try call.userMask("event", "list", app: query.appID, user: query.userID)
        let events = try EventReader(dataDirectory: dataDirectory).newest(
            query, before: try call.cursor()?.number, limit: call.limit + 1)
        return try call.page(read: events, at: { PagePosition($0.sequence) }) {
            mask.event($0, of: query.appID).json
        }
    }

    private func export(_ call: AdminCall) throws -> HTTPResponse {
        let query = try query(call)
        let mask = try call.userMask("event", "export", app: query.appID, user: query.userID)
        return Export.list(
            call, name: "\(query.appID)-events", columns: Self.columns, from: 0
        ) { [dataDirectory] sequence in
            let events = try EventReader(dataDirectory: dataDirectory).oldest(
                query, behind: sequence, limit: 500)
            let rows = events.map { event in
                let event = mask.event(event, of: query.appID)
                return Export.Row(
                    cells: [
                        String(event.sequence), event.messageID, event.type, event.userID ?? "",
                        event.anonymousID ?? "", event.name ?? "", String(event.timestampMilliseconds),
                        String(event.receivedMilliseconds), String(decoding: event.body, as: UTF8.self),
                    ], json: event.json)
            }
            return (rows, events.count == 500 ? events.last?.sequence : nil)
        }
    }

    private static let columns = [
        "seq", "message_id", "type", "user_id", "anonymous_id", "name", "timestamp_ms", "received_ms", "body",
    ]
}
