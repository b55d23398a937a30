internal import CountersignCore
internal import GatewayModel

/// Limits concurrent work. One address, which is an IPv4 address or an IPv6 /64, gets at most a quarter of the permits.
package final class AddressPermits: Sendable {
    private let most: Int
    /// The permits in use. The key nil is for all unknown addresses together.
    private let taken = Lock<[NetworkAddress?: Int]>([:])

    package init(most: Int) {
        self.most = most
    }

    package func take(_ address: String) -> Bool {
        let unit = NetworkAddress(address)?.limitedUnit
        return taken.withLock { taken in
            let all = taken.values.reduce(0, +)
            guard all < most, taken[unit, default: 0] < max(1, most / 4) else { return false }
            taken[unit, default: 0] += 1
            return true
        }
    }

    package func release(_ address: String) {
        let unit = NetworkAddress(address)?.limitedUnit
        taken.withLock { taken in
            let left = taken[unit, default: 1] - 1
            taken[unit] = left > 0 ? left : nil
        }
    }
}
