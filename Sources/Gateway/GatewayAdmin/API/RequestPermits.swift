internal import CountersignCore
internal import GatewayModel

/// Limits the waiting requests of each class and address. So password checks do not block other classes, and
/// one address does not use up a class.
final class RequestPermits: Sendable {
    private struct Key: Hashable {
        let queueClass: AdminOperation.QueueClass
        /// Nil for all unknown addresses together.
        let unit: NetworkAddress?
    }

    private struct Permits {
        var ofClass: [AdminOperation.QueueClass: Int] = [:]
        var ofAddress: [Key: Int] = [:]
    }

    private let permits = Lock(Permits())

    func take(_ queueClass: AdminOperation.QueueClass, of address: String) -> Bool {
        let key = Self.key(queueClass, address)
        return permits.withLock { permits in
            let most = Self.most(queueClass)
            guard permits.ofClass[queueClass, default: 0] < most,
                permits.ofAddress[key, default: 0] < max(1, most / 4)
            else { return false }
            permits.ofClass[queueClass, default: 0] += 1
            permits.ofAddress[key, default: 0] += 1
            return true
        }
    }

    func give(_ queueClass: AdminOperation.QueueClass, of address: String) {
        let key = Self.key(queueClass, address)
        permits.withLock { permits in
            permits.ofClass[queueClass, default: 0] -= 1
            permits.ofAddress[key, default: 0] -= 1
            if permits.ofAddress[key] == 0 { permits.ofAddress[key] = nil }
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
