internal import CountersignCore
internal import GatewayModel

/// Limits the waiting requests by lane and by address, so that password checks do not block other lanes and
/// one address does not fill a lane.
final class AdminPlaces: Sendable {
    private struct Key: Hashable {
        let lane: AdminOperation.Lane
        /// Nil for all unknown addresses together.
        let unit: NetworkAddress?
    }

    private struct Places {
        var ofLane: [AdminOperation.Lane: Int] = [:]
        var ofAddress: [Key: Int] = [:]
    }

    private let places = Lock(Places())

    /// Reserves a slot. Returns false if all are in use.
    func take(_ lane: AdminOperation.Lane, of address: String) -> Bool {
        let key = Self.key(lane, address)
        return places.withLock { places in
            let most = Self.most(lane)
            guard places.ofLane[lane, default: 0] < most, places.ofAddress[key, default: 0] < max(1, most / 4)
            else { return false }
            places.ofLane[lane, default: 0] += 1
            places.ofAddress[key, default: 0] += 1
            return true
        }
    }

    func give(_ lane: AdminOperation.Lane, of address: String) {
        let key = Self.key(lane, address)
        places.withLock { places in
            places.ofLane[lane, default: 0] -= 1
            places.ofAddress[key, default: 0] -= 1
            if places.ofAddress[key] == 0 { places.ofAddress[key] = nil }
        }
    }

    private static func key(_ lane: AdminOperation.Lane, _ address: String) -> Key {
        Key(lane: lane, unit: NetworkAddress(address)?.limitedUnit)
    }

    private static func most(_ lane: AdminOperation.Lane) -> Int {
        switch lane {
        case .common: 128
        case .data, .sessions: 64
        // With 16 requests, the last one waits for two seconds.
        case .password: 16
        case .backup: 4
        // With 4 requests, the last one waits for ten seconds.
        case .otherGateways: 4
        }
    }
}
