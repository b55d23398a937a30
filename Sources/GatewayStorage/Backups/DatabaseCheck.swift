internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// SQLite's own look at the databases of a data directory; a gateway may run.
package struct DatabaseCheck: Sendable {
    /// The file's name.
    package let name: String
    /// What is wrong; nil when nothing was found.
    package let problem: String?

    /// Those that are there.
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
