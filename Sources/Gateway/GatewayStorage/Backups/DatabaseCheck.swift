internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// The result of SQLite's `quick_check` for one database of a data directory. A gateway may be running.
package struct DatabaseCheck: Sendable {
    package let name: String
    package let problem: String?

    package static func all(in dataDirectory: String) -> [DatabaseCheck] {
        Backup.databases.filter { FileManager.default.fileExists(atPath: dataDirectory + "/" + $0) }.map {
            name in
            do {
                let database = try SQLiteConnection(path: dataDirectory + "/" + name, mode: .readOnly)
                let verdict = try database.first("PRAGMA quick_check(1)") { $0.text(0) }
                return DatabaseCheck(name: name, problem: verdict == "ok" ? nil : verdict ?? "no answer")
            } catch {
                return DatabaseCheck(name: name, problem: "\(error)")
            }
        }
    }
}
