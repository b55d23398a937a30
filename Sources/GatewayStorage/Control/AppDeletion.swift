internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// An app that was deleted, until its id is free again.
package struct AppDeletion: Sendable, Equatable {
    package let appID: String
    /// Milliseconds since 1970 of the request, from which on nothing is accepted for the app.
    package let requestedMilliseconds: Int64
    /// From when on the id may be used again; nil until it is known whether tokens were issued for the app.
    package let freeMilliseconds: Int64?
    /// When the last of its data was removed; nil while there may be some.
    package let erasedMilliseconds: Int64?
}

/// Deleting an app: one transaction takes away everything that requests are accepted by, and notes that the rest has to
/// follow. Before it the app is whole, after it nothing of it is accepted, whatever becomes of the process.
extension AppDirectory {
    /// Tables whose rows outlive their app: the record of what was done, and what is still to do.
    private static let lasting: BytewiseSet = ["audit", "app_deletion"]

    /// Deletes an app with its keys, settings, clients and everything else in this database. Its events and counts follow in
    /// the background, wherever a gateway runs. Throws `notFound`, `storage`.
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

    /// The apps that were deleted and whose ids are not free again, the first one first. Throws `storage`.
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

    /// Notes from when on the id of a deleted app may be used again. Throws `storage`.
    package func reserve(deletedApp id: String, until milliseconds: Int64) throws(GatewayError) {
        try write {
            try $0.run(
                "UPDATE app_deletion SET free_ms = ?2 WHERE app_id = ?1", .text(id), .integer(milliseconds))
        }
    }

    /// Notes that nothing is left of a deleted app. Throws `storage`.
    package func noteErased(_ id: String, at milliseconds: Int64) throws(GatewayError) {
        try write {
            try $0.run(
                "UPDATE app_deletion SET erased_ms = ?2 WHERE app_id = ?1", .text(id), .integer(milliseconds))
        }
    }

    /// Lets the id of a deleted app be used again. Throws `storage`.
    package func free(deletedApp id: String) throws(GatewayError) {
        try write { try $0.run("DELETE FROM app_deletion WHERE app_id = ?1", .text(id)) }
    }
}

extension AppDeletion {
    /// Why no app may be made with the id yet.
    var conflict: GatewayError {
        let free = freeMilliseconds.map { ", not before " + RFC3339.text(milliseconds: $0) } ?? ""
        return GatewayError(
            .conflict,
            "the app \(appID) is being deleted; its id can be used again once nothing of it is left\(free); choose another id"
        )
    }
}
