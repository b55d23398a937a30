internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// A deleted app, until its id is available again.
package struct AppDeletion: Sendable, Equatable {
    package let appID: String
    /// Time of the deletion, in milliseconds since 1970. Later requests for the app are rejected.
    package let requestedMilliseconds: Int64
    /// The earliest time at which the id is available; nil until it is known whether tokens were issued for the app.
    package let freeMilliseconds: Int64?
    /// When the deletion of the app's data was complete; nil while data may remain.
    package let erasedMilliseconds: Int64?
}

/// Deletes apps. One transaction deletes the data that accepting requests requires, and records that the other data
/// must be deleted. So the gateway completes a deletion even if the process is terminated.
extension AppDirectory {
    /// Tables with rows that outlive their app: the audit log and the pending deletions.
    private static let lasting: BytewiseSet = ["audit", "app_deletion"]

    /// Deletes an app's rows in this database. A running gateway deletes the app's other data in the background.
    package func deleteApp(id: String) throws(GatewayError) -> AppDeletion {
        let now = nowMilliseconds
        try write { connection in
            let name = try connection.first("SELECT name FROM app WHERE id = ?1", .text(id)) { $0.text(0) }
            guard let name else { throw Self.noApp(id) }
            for table in try connection.appTables() where !Self.lasting.contains(table.name) {
                try connection.delete(of: id, in: table, most: .max)
            }
            try connection.run("DELETE FROM app WHERE id = ?1", .text(id))
            try connection.run(
                "INSERT INTO app_deletion (app_id, requested_ms) VALUES (?1, ?2)", .text(id), .integer(now))
            try audit(
                connection, "app.delete", id, app: id, before: ["id": .string(id), "name": .string(name)])
        }
        return AppDeletion(
            appID: id, requestedMilliseconds: now, freeMilliseconds: nil, erasedMilliseconds: nil)
    }

    /// The deleted apps with unavailable ids, in the order of deletion.
    package func deletions() throws(GatewayError) -> [AppDeletion] {
        try read { try Self.deletions($0) }
    }

    static func deletions(_ connection: any SQLConnection) throws -> [AppDeletion] {
        try connection.all(
            "SELECT app_id, requested_ms, free_ms, erased_ms FROM app_deletion ORDER BY requested_ms, app_id"
        ) {
            AppDeletion(
                appID: $0.text(0), requestedMilliseconds: $0.int64(1), freeMilliseconds: $0.optionalInt64(2),
                erasedMilliseconds: $0.optionalInt64(3))
        }
    }

    package func reserve(deletedApp id: String, until milliseconds: Int64) throws(GatewayError) {
        try write {
            try $0.run(
                "UPDATE app_deletion SET free_ms = ?2 WHERE app_id = ?1", .text(id), .integer(milliseconds))
        }
    }

    package func noteErased(_ id: String, at milliseconds: Int64) throws(GatewayError) {
        try write {
            try $0.run(
                "UPDATE app_deletion SET erased_ms = ?2 WHERE app_id = ?1", .text(id), .integer(milliseconds))
        }
    }

    package func free(deletedApp id: String) throws(GatewayError) {
        try write { try $0.run("DELETE FROM app_deletion WHERE app_id = ?1", .text(id)) }
    }
}

extension AppDeletion {
    /// The error for creating an app with this id.
    var conflict: GatewayError {
        let free = freeMilliseconds.map { ", not before " + RFC3339.text(milliseconds: $0) } ?? ""
        return GatewayError(
            .conflict,
            "the app \(appID) is being deleted; its id can be used again once nothing of it is left\(free); choose another id"
        )
    }
}
