internal import CountersignCore
internal import GatewayModel

/// Limits the waiting requests by queueClass and by address, so that password checks do not block other lanes and
/// one address does not fill a queueClass.
final class RequestPermits: Sendable {
    private struct Key: Hashable {
        let queueClass: AdminOperation.QueueClass
        /// Nil for all unknown addresses together.
        let unit: NetworkAddress?
    }

    private struct Permits {
        var ofLane: [AdminOperation.QueueClass: Int] = [:]
        var ofAddress: [Key: Int] = [:]
    }

    private let places = Lock(Permits())

    /// Reserves a slot. Returns false if all are in use.
    func take(_ queueClass: AdminOperation.QueueClass, of address: String) -> Bool {
        let key = Self.key(queueClass, address)
        return places.withLock { places in
            let most = Self.most(queueClass)
            guard places.ofLane[queueClass, default: 0] < most,
                places.ofAddress[key, default: 0] < max(1, most / 4)
            else { return false }
            places.ofLane[queueClass, default: 0] += 1
            places.ofAddress[key, default: 0] += 1
            return true
        }
    }

    func give(_ queueClass: AdminOperation.QueueClass, of address: String) {
        let key = Self.key(queueClass, address)
        places.withLock { places in
            places.ofLane[queueClass, default: 0] -= 1
            places.ofAddress[key, default: 0] -= 1
            if places.ofAddress[key] == 0 { places.ofAddress[key] = nil }
        }
    }

    private static func key(_ queueClass: AdminOperation.QueueClass, _ address: String) -> Key {
        Key(queueClass: queueClass, unit: NetworkAddress(address)?.limitedUnit)
    }

    private static func most(_ queueClass: AdminOperation.QueueClass) -> Int {
        switch queueClass {
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
