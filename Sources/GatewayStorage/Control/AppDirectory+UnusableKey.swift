internal import CountersignSQLite
package import GatewayModel

extension AppDirectory {
    /// Puts a key in place that cannot be used, as a damaged file would have it: for provoking the error 25, which
    /// ``addKey(_:description:to:)`` keeps from happening. Returns the key's id, for ``deleteKey(keyID:of:)``. Throws
    /// `notFound`, `storage`.
    package func putUnusableKey(in appID: String) throws(GatewayError) -> String {
        let id = "unusable"
        _ = try app(id: appID)
        try write { connection in
            try connection.run(
                """
                INSERT INTO public_key (app_id, id, slot, description, text, added_ms) VALUES (?, ?, 1, '', '', ?)
                ON CONFLICT DO NOTHING
                """, .text(appID), .text(id), .integer(nowMilliseconds))
            try audit(connection, "key.add", id, app: appID)
        }
        return id
    }
}
