internal import CountersignCore

/// Stored events.
struct EventRoutes: Sendable {
    let dataDirectory: String

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/apps/{app}/events", .viewer, "List events, the newest first", answer: list),
            AdminRoute(
                "GET", "/apps/{app}/events/export", .viewer, "Export events, the oldest first", answer: export
            ),
        ]
    }

    private func query(_ call: AdminCall) throws -> EventQuery {
        let time: ClosedRange<Int64> = 0...253_402_300_799_999
        var query = EventQuery(appID: try call.app().id)
        query.userID = call.query("user")
        query.messageID = call.query("message_id")
        query.type = call.query("type")
        query.name = call.query("name")
        query.fromMilliseconds = try call.integer("from_ms", time)
        query.toMilliseconds = try call.integer("to_ms", time)
        return query
    }

    private func list(_ call: AdminCall) throws -> HTTPResponse {
        let query = try query(call)
        let limit = try call.limit()
        let events = try EventReader(dataDirectory: dataDirectory).newest(
            query, before: try call.integer("cursor", 0...Int64.max), limit: limit + 1)
        let page = events.prefix(limit)
        return call.list(
            page.map(\.json), next: events.count > limit ? page.last.map { String($0.sequence) } : nil)
    }

    private func export(_ call: AdminCall) throws -> HTTPResponse {
        let query = try query(call)
        let isCSV = try Export.isCSV(call)
        let position = Lock<Int64?>(0)
        let isFirst = Lock(true)
        let stream = ListStream { [dataDirectory] in
            guard let sequence = position.withLock({ $0 }),
                let events = try? EventReader(dataDirectory: dataDirectory).oldest(
                    query, behind: sequence, limit: 500)
            else { return nil }
            position.withLock { $0 = events.count == 500 ? events.last?.sequence : nil }
            var bytes: [UInt8] = []
            let begins = isFirst.withLock { first in
                defer { first = false }
                return first
            }
            if isCSV, begins {
                Export.write(Self.columns, to: &bytes)
            }
            for event in events {
                if isCSV {
                    Export.write(
                        [
                            String(event.sequence), event.messageID, event.type, event.userID ?? "",
                            event.anonymousID ?? "", event.name ?? "", String(event.timestampMilliseconds),
                            String(event.receivedMilliseconds),
                            String(decoding: event.body, as: UTF8.self),
                        ], to: &bytes)
                } else {
                    event.json.write(to: &bytes)
                    bytes.append(0x0A)
                }
            }
            return bytes
        }
        var response = Export.response(isCSV: isCSV, name: "\(query.appID)-events")
        response.stream = stream.body
        return response
    }

    private static let columns = [
        "seq", "message_id", "type", "user_id", "anonymous_id", "name", "timestamp_ms", "received_ms", "body",
    ]
}
