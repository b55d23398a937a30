internal import CountersignCore
internal import CountersignSQLite
package import GatewayModel

/// A JWK Set fetched for an app.
package struct PublishedKeySet: Sendable, Equatable {
    package let json: String
    /// Milliseconds since 1970.
    package let fetchedMilliseconds: Int64

    package init(json: String, fetchedMilliseconds: Int64) {
        self.json = json
        self.fetchedMilliseconds = fetchedMilliseconds
    }
}

/// Stores the last valid set of each key source for all gateways, until the source or the app is deleted.
extension AppDirectory {
    /// The stored set of a source's URL; nil if no set is stored.
    package func publishedKeySet(of source: KeySource, for appID: String) throws(GatewayError)
        -> PublishedKeySet?
    {
        try read { connection in
            try connection.first(
                "SELECT body, fetched_ms FROM published_key_set WHERE app_id = ?1 AND url = ?2", .text(appID),
                .text(source.url)
            ) { PublishedKeySet(json: $0.text(0), fetchedMilliseconds: $0.int64(1)) }
        }
    }

    /// Stores a set, unless a newer set of the same URL is stored. A stored set that is more than `tolerance`
    /// milliseconds newer than `set` was dated by a wrong clock, and is replaced.
    package func keepPublishedKeySet(
        _ set: PublishedKeySet, of source: KeySource, for appID: String, tolerance: Int64
    ) throws(GatewayError) {
        // With `alone: false`, gateways are not notified of the change. They poll for newer sets anyway.
        try database.write(alone: false) { connection in
            try connection.run(
                """
                INSERT INTO published_key_set (app_id, url, body, fetched_ms) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT (app_id, url) DO UPDATE
                SET body = excluded.body, fetched_ms = excluded.fetched_ms
                WHERE published_key_set.fetched_ms < excluded.fetched_ms
                    OR published_key_set.fetched_ms > excluded.fetched_ms + ?5
                """, .text(appID), .text(source.url), .text(set.json), .integer(set.fetchedMilliseconds),
                .integer(tolerance))
        }
    }
}
