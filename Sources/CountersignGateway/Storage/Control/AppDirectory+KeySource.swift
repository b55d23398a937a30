internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

/// Where apps' keys are published. A running gateway sees a change within a second.
extension AppDirectory {
    static let keySourceSchema = """
        CREATE TABLE key_source (
            app_id TEXT PRIMARY KEY REFERENCES app (id) ON DELETE CASCADE,
            url TEXT NOT NULL,
            allows_private INTEGER NOT NULL
        ) STRICT;
        """

    /// Follows a JWK Set that somebody else publishes: its keys verify beside the app's own three.
    ///
    /// - Parameters:
    ///   - url: An `https` URL without user, password and fragment; nil follows none.
    ///   - allowsPrivateAddresses: Whether it may be on a private network or on this machine.
    ///   - appID: The app.
    /// - Throws: `invalid`, `notFound`, `storage`.
    public func setKeySource(
        url: String?, allowsPrivateAddresses: Bool = false, of appID: String
    ) throws(GatewayError) {
        let app = try app(id: appID)
        let before = try keySources()[app.id]?.json
        guard let url else {
            if before == nil { return }
            return try write {
                try $0.run("DELETE FROM key_source WHERE app_id = ?", .text(app.id))
                try audit($0, "key_source.remove", app.id, app: app.id, before: before)
            }
        }
        guard let parts = URLComponents(string: url), parts.scheme == "https", parts.host?.isEmpty == false,
            parts.user == nil, parts.password == nil, parts.fragment == nil
        else {
            throw GatewayError(.invalid, "the address of a JWK Set is an https URL without user and fragment")
        }
        let after = KeySource(url: url, allowsPrivateAddresses: allowsPrivateAddresses).json
        try write {
            try audit($0, "key_source.set", app.id, app: app.id, before: before, after: after)
            try $0.run(
                "INSERT OR REPLACE INTO key_source VALUES (?, ?, ?)", .text(app.id), .text(url),
                .integer(allowsPrivateAddresses ? 1 : 0))
        }
    }

    /// Where an app's keys are published, or nil.
    ///
    /// - Throws: `notFound`, `storage`.
    public func keySourceURL(of appID: String) throws(GatewayError) -> String? {
        try keySources()[try app(id: appID).id]?.url
    }

    /// The sources of all apps that have one, by id.
    func keySources() throws(GatewayError) -> [String: KeySource] {
        let rows = try read { sqlite in
            try sqlite.all("SELECT app_id, url, allows_private FROM key_source") { row in
                (row.text(0), KeySource(url: row.text(1), allowsPrivateAddresses: row.int(2) != 0))
            }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }
}
