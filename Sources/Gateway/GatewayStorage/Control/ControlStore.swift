internal import CountersignCore
internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// A store in the control database. A running gateway loads a change within a second.
///
/// Methods may throw `storage`, `notFound` for an unknown app or object, and `invalid` for an unusable value.
package protocol ControlStore: Sendable {
    var database: any SQLDatabase { get }
    var actor: Operator { get }
    var now: @Sendable () -> Date { get }
}

extension ControlStore {
    func read<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
        try database.read(body)
    }

    func write<Result>(_ body: (any SQLConnection) throws -> Result) throws(GatewayError) -> Result {
        try database.write(body)
    }

    /// Adds an entry to the audit log. Must run in the transaction of the change.
    func audit(
        _ connection: any SQLConnection, _ action: String, _ target: String, app appID: String? = nil,
        before: JSONValue? = nil, after: JSONValue? = nil, at milliseconds: Int64? = nil
    ) throws {
        func text(_ value: JSONValue?) -> String? { value.map { String(decoding: $0.bytes, as: UTF8.self) } }
        let head = try connection.first("SELECT seq, hash FROM audit_head") { ($0.int64(0), $0.blob(1)) }
        guard let head else { throw GatewayError(.storage, "the end of the audit log is missing") }
        var entry = AuditEntry(
            seq: head.0 + 1, atMilliseconds: milliseconds ?? nowMilliseconds, actor: actor.name,
            role: actor.role, action: action, target: target, appID: appID, before: text(before),
            after: text(after), previousHash: head.1, hash: [])
        entry.hash = entry.computedHash
        try connection.run(
            """
            INSERT INTO audit (\(AuditEntry.columns)) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            """, .integer(entry.seq),
            .integer(entry.atMilliseconds), .text(entry.actor), .text(entry.role), .text(entry.action),
            .text(entry.target), .optionalText(entry.appID), .optionalText(entry.before),
            .optionalText(entry.after), .blob(entry.previousHash), .blob(entry.hash))
        try connection.run(
            "UPDATE audit_head SET seq = ?1, hash = ?2", .integer(entry.seq), .blob(entry.hash))
    }

    var nowMilliseconds: Int64 { Milliseconds(now()).count }

    static func noApp(_ id: String) -> GatewayError {
        GatewayError(.notFound, "there is no app \(id)")
    }

    static func appIDs(_ connection: any SQLConnection) throws -> [String] {
        try connection.all("SELECT id FROM app ORDER BY id") { $0.text(0) }
    }

    static func checkApp(_ id: String, _ connection: any SQLConnection) throws {
        let isThere = try connection.first("SELECT 1 FROM app WHERE id = ?", .text(id)) { _ in true }
        if isThere == nil { throw noApp(id) }
    }
}

extension AuditEntry {
    /// The columns of the table `audit`, in the order in which they are read.
    static let columns = """
        seq, at_ms, actor, role, action, target, app_id, before, after, previous_hash, hash
        """
}
