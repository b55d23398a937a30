internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

/// The last good set of a key source as it is stored: for the next start, and for other gateways of the same database.
struct SharedKeySet: Sendable {
    struct Copy: Sendable {
        let json: String
        /// Seconds since 1970.
        let fetchedAt: Double
    }

    /// Seconds by which the gateways' clocks may differ.
    static let tolerance = 60.0

    /// Reads the newest; nil when there is none or it cannot be read now.
    let read: @Sendable () -> Copy?
    /// Stores a set, unless there is a newer one.
    let write: @Sendable (Copy) -> Void

    init(read: @escaping @Sendable () -> Copy?, write: @escaping @Sendable (Copy) -> Void) {
        self.read = read
        self.write = write
    }

    /// The set of one app's source.
    init(in directory: AppDirectory, source: KeySource, of appID: String) {
        self.init(
            read: {
                // A set that cannot be read now is read at the next look, or fetched.
                let stored = try? directory.publishedKeySet(of: source, for: appID)
                return stored.map {
                    Copy(json: $0.json, fetchedAt: Milliseconds($0.fetchedMilliseconds).seconds)
                }
            },
            write: { copy in
                // A set that cannot be stored is stored after a later fetch.
                try? directory.keepPublishedKeySet(
                    PublishedKeySet(
                        json: copy.json, fetchedMilliseconds: Milliseconds(seconds: copy.fetchedAt).count),
                    of: source, for: appID, tolerance: Milliseconds(seconds: Self.tolerance).count)
            })
    }
}
