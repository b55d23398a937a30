internal import GatewayModel

/// Decides how soon a published set may be fetched again because a token names a key that is not in it.
///
/// Any client can send such tokens. A key id that is new, from an address that has not just named several others, has the set
/// fetched within ``fastSeconds`` of the last fetch; all others within ``slowSeconds``. So one stranger can neither use up
/// the fetches that follow a rotation nor make the gateway flood the publisher.
struct UnknownKeyBudget: Sendable {
    /// Seconds between two fetches for key ids that are looked for in earnest.
    static let fastSeconds = 2.0
    /// Seconds between two fetches for all others.
    static let slowSeconds = 10.0
    /// How often a key id is looked for with ``fastSeconds``: its key may be published just after it is used.
    static let fastLookups = 2
    /// New key ids of one address within ``windowSeconds`` that are looked for with ``fastSeconds``.
    static let newKeysOfAddress = 3
    static let windowSeconds = 60.0
    private static let mostKeys = 256
    private static let mostAddresses = 1_024
    private static let longestKeyID = 128

    /// How often each unknown key id was looked for.
    private var lookups: [[UInt8]: Int] = [:]
    private var newKeys: [NetworkAddress: (count: Int, since: Double)] = [:]
    /// Seconds after the last fetch at which the next is wanted; nil when no token has asked for one.
    private(set) var wantedAfter: Double?

    /// A token with this `kid`, empty for none, was not verified by any key of the set. `address` is nil for this machine.
    mutating func note(_ keyID: some Sequence<UInt8>, from address: NetworkAddress?, at instant: Double) {
        let keyID = Array(keyID.prefix(Self.longestKeyID))
        let isFast: Bool
        if let count = lookups[keyID] {
            isFast = count < Self.fastLookups
        } else {
            if lookups.count >= Self.mostKeys { lookups = [:] }
            lookups[keyID] = 0
            isFast = takesNewKey(address, at: instant)
            // Looked for slowly from the first time on.
            if !isFast { lookups[keyID] = Self.fastLookups }
        }
        wantedAfter = min(wantedAfter ?? .infinity, isFast ? Self.fastSeconds : Self.slowSeconds)
    }

    /// A fetch begins, for every key id that was noted.
    mutating func fetchBegins() {
        guard wantedAfter != nil else { return }
        wantedAfter = nil
        for keyID in lookups.keys { lookups[keyID, default: 0] += 1 }
    }

    /// The set has other keys than before.
    mutating func setChanged() {
        lookups = [:]
    }

    private mutating func takesNewKey(_ address: NetworkAddress?, at instant: Double) -> Bool {
        guard let address else { return true }
        if newKeys.count >= Self.mostAddresses, newKeys[address] == nil {
            newKeys = newKeys.filter { abs(instant - $0.value.since) < Self.windowSeconds }
            if newKeys.count >= Self.mostAddresses { newKeys = [:] }
        }
        var known = newKeys[address] ?? (0, instant)
        if abs(instant - known.since) >= Self.windowSeconds { known = (0, instant) }
        known.count += 1
        newKeys[address] = known
        return known.count <= Self.newKeysOfAddress
    }
}
