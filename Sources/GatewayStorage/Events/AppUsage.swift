internal import CountersignSQLite
package import GatewayModel

/// How much the apps keep.
package enum AppUsage {
    /// Events of all apps, as of the last commit.
    ///
    /// - Parameter dataDirectory: The gateway's data directory; the gateway may run.
    /// - Returns: How many there are.
    /// - Throws: `storage`.
    package static func events(in dataDirectory: String) throws(GatewayError) -> Int64 {
        do {
            let database = try SQLiteConnection(path: dataDirectory + "/events.sqlite", mode: .readOnly)
            return try database.first("SELECT sum(events) FROM app_usage") { row throws(SQLiteError) in
                row.int64(0)
            } ?? 0
        } catch {
            throw GatewayError(.storage, "\(error)")
        }
    }
}
