package import CountersignCore
internal import CountersignJOSE
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Which streams events are published to. A running gateway sees a change within a second.
package struct SinkStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// The most sinks of all apps: each has a thread and a connection.
    package static let most = 16

    /// An app's sinks, in the order in which they were made. Throws `notFound`, `storage`.
    package func all(of appID: String) throws(GatewayError) -> [EventSink] {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try Self.sinks(connection, where: "WHERE app_id = ?1", [.text(appID)])
        }
    }

    /// The sinks of all apps. Throws `storage`.
    package func all() throws(GatewayError) -> [EventSink] {
        try read { try Self.sinks($0) }
    }

    /// Throws `notFound`, `storage`.
    package func sink(_ name: String, of appID: String) throws(GatewayError) -> EventSink {
        try read { try Self.sink(name, of: appID, $0) }
    }

    /// Makes a sink, whose first event is the one after `startSequence`. Throws `invalid`, `conflict` when there are too
    /// many, or one of that name or with that stream, `notFound`, `storage`.
    package func create(
        _ name: String, of appID: String, _ members: JSONObject, after startSequence: Int64,
        at milliseconds: Int64
    ) throws(GatewayError) -> EventSink {
        var sink = EventSink(
            name: name, appID: appID, createdMilliseconds: milliseconds, startSequence: startSequence)
        sink.set(members)
        try sink.check()
        let made = sink
        try write { connection in
            try Self.checkApp(appID, connection)
            let others = try Self.sinks(connection)
            if others.contains(where: { $0.key == made.key }) {
                throw GatewayError(
                    .conflict, "there is already a sink \(name); delete it first, or choose another name")
            }
            // Two that write to one stream would each find the other's messages where its own must be.
            if let other = others.first(where: {
                $0.stream == made.stream && $0.addresses.contains(where: made.addresses.contains)
            }) {
                throw GatewayError(
                    .conflict,
                    "the sink \(other.key) already publishes to this stream; give each its own stream"
                )
            }
            guard others.count < Self.most else {
                throw GatewayError(
                    .conflict, "a gateway may have at most \(Self.most) sinks; delete one first")
            }
            try connection.run(
                "INSERT INTO sink (app_id, name, created_ms, body) VALUES (?1, ?2, ?3, ?4)", .text(appID),
                .text(name), .integer(milliseconds), Self.body(made))
            try audit(connection, "sink.create", name, app: appID, after: made.json, at: milliseconds)
        }
        return made
    }

    /// Stops publishing, or lets it go on where `pause` is nil. Throws `notFound`, `storage`.
    package func setPause(
        _ pause: EventSink.Pause?, of name: String, of appID: String, at milliseconds: Int64
    ) throws(GatewayError) {
        try update(name, of: appID, pause == nil ? "sink.resume" : "sink.pause", at: milliseconds) { sink in
            // Who pauses what is paused already changes nothing.
            if pause == nil || sink.pause == nil { sink.pause = pause }
        }
    }

    /// Goes on after another event, whatever is in the stream. Throws `notFound`, `storage`.
    package func seek(
        _ name: String, of appID: String, after sequence: Int64, at milliseconds: Int64
    ) throws(GatewayError) {
        try update(name, of: appID, "sink.seek", at: milliseconds) { sink in
            sink.startSequence = sequence
            // A clock that was set back must not make it older than a mark.
            sink.epoch = max(milliseconds, sink.epoch + 1)
        }
    }

    /// Deletes a sink; what is in the stream stays there. Throws `notFound`, `storage`.
    package func delete(_ name: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let sink = try Self.sink(name, of: appID, connection)
            try connection.run("DELETE FROM sink WHERE app_id = ?1 AND name = ?2", .text(appID), .text(name))
            try audit(connection, "sink.delete", name, app: appID, before: sink.json)
        }
    }

    // MARK: Rows

    private func update(
        _ name: String, of appID: String, _ action: String, at milliseconds: Int64,
        _ edit: (inout EventSink) -> Void
    ) throws(GatewayError) {
        try write { connection in
            let before = try Self.sink(name, of: appID, connection)
            var after = before
            edit(&after)
            guard after != before else { return }
            try connection.run(
                "UPDATE sink SET body = ?3 WHERE app_id = ?1 AND name = ?2", .text(appID), .text(name),
                Self.body(after))
            try audit(
                connection, action, name, app: appID, before: before.json, after: after.json, at: milliseconds
            )
        }
    }

    private static func body(_ sink: EventSink) -> SQLValue {
        .text(String(decoding: sink.kept.bytes, as: UTF8.self))
    }

    private static func sink(
        _ name: String, of appID: String, _ connection: any SQLConnection
    ) throws -> EventSink {
        let found = try sinks(
            connection, where: "WHERE app_id = ?1 AND name = ?2", [.text(appID), .text(name)])
        guard let sink = found.first else {
            throw GatewayError(.notFound, "the app \(appID) has no sink \(name)")
        }
        return sink
    }

    private static func sinks(
        _ connection: any SQLConnection, where condition: String = "", _ values: [SQLValue] = []
    ) throws -> [EventSink] {
        let rows = try connection.all(
            "SELECT app_id, name, created_ms, body FROM sink \(condition) ORDER BY created_ms, app_id, name",
            values
        ) { ($0.text(0), $0.text(1), $0.int64(2), Array($0.text(3).utf8)) }
        return try rows.map { appID, name, created, body in
            let parser = StrictJSONParser(maximumBytes: max(1, body.count))
            guard let members = try parser.parse(bytes: body, { $0.value }).members else {
                throw GatewayError(.storage, "the sink \(name) is damaged")
            }
            return EventSink(name: name, appID: appID, createdMilliseconds: created, kept: members)
        }
    }
}
