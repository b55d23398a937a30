internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

/// The last good set of a key source, stored for restarts and for gateways with the same database.
struct SharedKeySet: Sendable {
    /// Seconds by which the gateways' clocks may differ.
    static let tolerance = 60.0

    /// Reads the newest set; nil if there is no set or it cannot be read now.
    let read: @Sendable () -> PublishedKeySet?
    /// Stores a set, unless a newer one is stored. Returns false after an error.
    let write: @Sendable (PublishedKeySet) -> Bool
}

extension SharedKeySet {
    init(in directory: AppDirectory, source: KeySource, of appID: String) {
        self.init(
            // After an error, ``RemoteJWKSet`` reads the set again later or fetches it.
            read: { try? directory.publishedKeySet(of: source, for: appID) },
            write: { set in
                let tolerance = Milliseconds(seconds: Self.tolerance).count
                let stored: Void? = try? directory.keepPublishedKeySet(
                    set, of: source, for: appID, tolerance: tolerance)
                return stored != nil
            })
    }
}
