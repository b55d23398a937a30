internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

/// The last good set of a key source, stored for restarts and for gateways with the same database.
struct SharedKeySet: Sendable {
    struct Copy: Sendable {
        let json: String
        /// Seconds since 1970.
        let fetchedAt: Double
    }

    /// Seconds by which the gateways' clocks may differ.
    static let tolerance = 60.0

    /// Reads the newest set; nil if there is no set or it cannot be read now.
    let read: @Sendable () -> Copy?
    /// Stores a set, unless a newer one is stored.
    let write: @Sendable (Copy) -> Void

    init(read: @escaping @Sendable () -> Copy?, write: @escaping @Sendable (Copy) -> Void) {
        self.read = read
        self.write = write
    }

    init(in directory: AppDirectory, source: KeySource, of appID: String) {
        self.init(
            read: {
                // After an error, the set is read again later or fetched.
                let stored = try? directory.publishedKeySet(of: source, for: appID)
                return stored.map {
                    Copy(json: $0.json, fetchedAt: Milliseconds($0.fetchedMilliseconds).seconds)
                }
            },
            write: { copy in
                // After an error, the set of a later fetch is stored.
                try? directory.keepPublishedKeySet(
                    PublishedKeySet(
                        json: copy.json, fetchedMilliseconds: Milliseconds(seconds: copy.fetchedAt).count),
                    of: source, for: appID, tolerance: Milliseconds(seconds: Self.tolerance).count)
            })
    }
}
