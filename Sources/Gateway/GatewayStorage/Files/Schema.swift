internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
package import GatewayModel

/// Migrates a database to this version's schema. A database with data is backed up first.
package enum Schema {
    /// The first migration creates the version `oldest`. The backup is in the folder `backups` next to the file, and
    /// durable before any change. To go back, stop the gateway and use the backup in a new data directory.
    ///
    /// Throws errors of ``check(_:known:in:)``, `storage` when the backup cannot be made durable, and errors of SQLite
    /// and Foundation. A failed migration is rolled back; migrations before it stay.
    static func migrate(
        _ connection: SQLiteConnection, _ migrations: [String], from oldest: Int = 1, at now: Date = Date()
    ) throws {
        let version = try connection.userVersion()
        let newest = oldest + migrations.count - 1
        try check(version, known: oldest...newest, in: connection.path)
        if version > 0, version < newest { try backUp(connection, version: version, at: now) }
        try connection.migrate(migrations, from: oldest) { number in
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS schema_version (
                    version INTEGER PRIMARY KEY, applied_ms INTEGER NOT NULL, program TEXT NOT NULL) STRICT
                """)
            try connection.run(
                "INSERT OR REPLACE INTO schema_version VALUES (?1, ?2, ?3)", .integer(Int64(number)),
                .integer(Milliseconds(now).count), .text(countersignVersion))
        }
    }

    /// Throws `conflict` for a version that this program cannot migrate; 0 is an empty file or database.
    package static func check(
        _ version: Int, known: ClosedRange<Int>, in location: String
    ) throws(GatewayError) {
        guard version != 0, !known.contains(version) else { return }
        let age = version > known.upperBound ? "a newer" : "an older"
        throw GatewayError(
            .conflict,
            "\(location) was written by \(age) version (schema \(version), this one knows \(known.lowerBound) to \(known.upperBound)); start a version that knows \(version), or restore a backup"
        )
    }

    private static func backUp(_ connection: SQLiteConnection, version: Int, at now: Date) throws {
        let file = URL(fileURLWithPath: connection.path)
        let folder = file.deletingLastPathComponent().appendingPathComponent("backups")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let time = RFC3339.text(milliseconds: Milliseconds(now).count)
            .unicodeScalars.filter { ("0"..."9").contains($0) || $0 == "T" }
        let name = "\(file.deletingPathExtension().lastPathComponent)-schema\(version)-\(time).sqlite"
        let copy = folder.appendingPathComponent(name).path
        try connection.run("VACUUM INTO ?1", .text(copy))
        for path in [copy, folder.path] where synchronizeFile(path) != 0 {
            throw GatewayError(.storage, "cannot write the copy \(copy)")
        }
    }
}
