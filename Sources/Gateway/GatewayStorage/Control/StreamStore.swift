package import CountersignCore
internal import CountersignJSON
internal import CountersignSQLite
package import Foundation
package import GatewayModel

package struct StreamStore: ControlStore {
    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// The maximum number of streams of all apps. Each stream has a connection and may block a thread.
    package static let most = 16

    /// In the order of creation.
    package func all(of appID: String) throws(GatewayError) -> [StreamSettings] {
        try read { connection in
            try Self.checkApp(appID, connection)
            return try Self.streams(connection, where: "WHERE app_id = ?1", [.text(appID)])
        }
    }

    package func all() throws(GatewayError) -> [StreamSettings] {
        try read { try Self.streams($0) }
    }

    package func stream(_ name: String, of appID: String) throws(GatewayError) -> StreamSettings {
        try read { try Self.stream(name, of: appID, $0) }
    }

    /// Creates a stream that starts after `startSequence`. Throws `conflict` for a used name, for too many streams, or
    /// if another stream publishes to the same JetStream stream.
    package func create(
        _ name: String, of appID: String, _ members: JSONObject, after startSequence: Int64,
        at milliseconds: Int64
    ) throws(GatewayError) -> StreamSettings {
        var settings = StreamSettings(
            name: name, appID: appID, createdMilliseconds: milliseconds, startSequence: startSequence)
        settings.set(members)
        try settings.check()
        let made = settings
        try write { connection in
            try Self.checkApp(appID, connection)
            let others = try Self.streams(connection)
            if others.contains(where: { $0.key == made.key }) {
                throw GatewayError(
                    .conflict, "there is already a stream \(name); delete it first, or choose another name")
            }
            // A JetStream stream has one publisher, because delivery resumes after its last message.
            if let other = others.first(where: {
                $0.stream == made.stream && $0.addresses.contains(where: made.addresses.contains)
            }) {
                throw GatewayError(
                    .conflict,
                    "the stream \(other.key) already publishes to this JetStream stream; choose a different one"
                )
            }
            guard others.count < Self.most else {
                throw GatewayError(
                    .conflict, "a gateway may have at most \(Self.most) streams; delete one first")
            }
            try connection.run(
                "INSERT INTO sink (app_id, name, created_ms, body) VALUES (?1, ?2, ?3, ?4)", .text(appID),
                .text(name), .integer(milliseconds), Self.body(made))
            try audit(connection, "stream.create", name, app: appID, after: made.json, at: milliseconds)
        }
        return made
    }

    /// Pauses publishing. A nil `pause` resumes it.
    package func setPause(
        _ pause: WayPause?, of name: String, of appID: String, at milliseconds: Int64
    ) throws(GatewayError) {
        try update(
            name, of: appID, pause == nil ? "stream.resume" : "stream.pause", isNoted: pause == nil,
            at: milliseconds
        ) { settings in
            // A second pause leaves the first unchanged.
            if pause == nil || settings.pause == nil { settings.pause = pause }
        }
    }

    /// Moves the start position. Publishing continues there, even if the JetStream stream already has later messages.
    package func seek(
        _ name: String, of appID: String, after sequence: Int64, at milliseconds: Int64
    ) throws(GatewayError) {
        try update(name, of: appID, "stream.seek", at: milliseconds) { settings in
            settings.startSequence = sequence
            // The epoch must increase even if the clock was set back.
            settings.epoch = max(milliseconds, settings.epoch + 1)
        }
    }

    /// Deletes the settings. The JetStream stream and its messages remain.
    package func delete(_ name: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let settings = try Self.stream(name, of: appID, connection)
            try connection.run("DELETE FROM sink WHERE app_id = ?1 AND name = ?2", .text(appID), .text(name))
            try audit(connection, "stream.delete", name, app: appID, before: settings.json)
        }
    }

    // MARK: Rows

    /// Without `isNoted`, adds no audit entry and no revision if `edit` changes nothing.
    private func update(
        _ name: String, of appID: String, _ action: String, isNoted: Bool = false, at milliseconds: Int64,
        _ edit: (inout StreamSettings) -> Void
    ) throws(GatewayError) {
        try write { connection in
            let before = try Self.stream(name, of: appID, connection)
            var after = before
            edit(&after)
            guard after != before || isNoted else { return }
            after.revision += 1
            try connection.run(
                "UPDATE sink SET body = ?3 WHERE app_id = ?1 AND name = ?2", .text(appID), .text(name),
                Self.body(after))
            try audit(
                connection, action, name, app: appID, before: before.json, after: after.json, at: milliseconds
            )
        }
    }

    private static func body(_ settings: StreamSettings) -> SQLValue {
        .text(String(decoding: settings.kept.bytes, as: UTF8.self))
    }

    private static func stream(
        _ name: String, of appID: String, _ connection: any SQLConnection
    ) throws -> StreamSettings {
        let found = try streams(
            connection, where: "WHERE app_id = ?1 AND name = ?2", [.text(appID), .text(name)])
        guard let settings = found.first else {
            throw GatewayError(.notFound, "the app \(appID) has no stream \(name)")
        }
        return settings
    }

    private static func streams(
        _ connection: any SQLConnection, where condition: String = "", _ values: [SQLValue] = []
    ) throws -> [StreamSettings] {
        let rows = try connection.all(
            "SELECT app_id, name, created_ms, body FROM sink \(condition) ORDER BY created_ms, app_id, name",
            values
        ) { ($0.text(0), $0.text(1), $0.int64(2), Array($0.text(3).utf8)) }
        return try rows.map { appID, name, created, body in
            let parser = StrictJSONParser(maximumBytes: max(1, body.count))
            guard let members = try parser.parse(bytes: body, { $0.value }).members else {
                throw GatewayError(.storage, "the stream \(name) is damaged")
            }
            return StreamSettings(name: name, appID: appID, createdMilliseconds: created, kept: members)
        }
    }
}
