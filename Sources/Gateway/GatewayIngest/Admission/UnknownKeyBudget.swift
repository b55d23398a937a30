internal import GatewayModel

/// Decides when a published set may be fetched again because tokens name unknown keys.
///
/// Any client can send such tokens. A key id triggers a fetch ``fastSeconds`` after the last fetch. The delay is
/// ``slowSeconds`` for an id with ``fastLookups`` fetches, and for a new id from an address that has sent
/// ``newKeysOfAddress`` others in ``windowSeconds``. So a client can neither delay a needed fetch nor cause many.
struct UnknownKeyBudget: Sendable {
    static let fastSeconds = 2.0
    static let slowSeconds = 10.0
    /// The number of fast fetches for each key id. A key may be published shortly after its first use, so 1 is too few.
    static let fastLookups = 2
    /// The number of new key ids of one address within ``windowSeconds`` that trigger a fast fetch.
    static let newKeysOfAddress = 3
    static let windowSeconds = 60.0
    private static let mostKeys = 256
    private static let mostAddresses = 1_024
    private static let longestKeyID = 128

    /// The number of fetches for unknown keys since each key id was first noted; ``fastLookups`` or more for slow ids.
    private var lookups: [[UInt8]: Int] = [:]
    private var newKeys: [NetworkAddress: (count: Int, since: Double)] = [:]
    /// Seconds after the last fetch at which the next is due; nil if no token needs one.
    private(set) var wantedAfter: Double?

    /// Records a token with an unknown key. `keyID` is its `kid`, empty if missing; `address` is nil for this machine.
    mutating func note(_ keyID: some Sequence<UInt8>, from address: NetworkAddress?, at instant: Double) {
        let keyID = Array(keyID.prefix(Self.longestKeyID))
        let isFast: Bool
        if let count = lookups[keyID] {
            isFast = count < Self.fastLookups
        } else {
            if lookups.count >= Self.mostKeys { lookups = [:] }
            lookups[keyID] = 0
            isFast = takesNewKey(address, at: instant)
            // Use slow fetches for this key id from the start.
            if !isFast { lookups[keyID] = Self.fastLookups }
        }
        wantedAfter = min(wantedAfter ?? .infinity, isFast ? Self.fastSeconds : Self.slowSeconds)
    }

    mutating func fetchBegins() {
        guard wantedAfter != nil else { return }
        wantedAfter = nil
        for keyID in lookups.keys { lookups[keyID, default: 0] += 1 }
    }

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
