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

    private let taken = Lock<[Key: Int]>([:])

    func take(_ queueClass: AdminOperation.QueueClass, of address: String) -> Bool {
        let key = Self.key(queueClass, address)
        return taken.withLock { taken in
            let ofClass = taken.reduce(0) { $1.key.queueClass == queueClass ? $0 + $1.value : $0 }
            let most = queueClass.mostWaiting
            guard ofClass < most, taken[key, default: 0] < max(1, most / 4) else { return false }
            taken[key, default: 0] += 1
            return true
        }
    }

    func release(_ queueClass: AdminOperation.QueueClass, of address: String) {
        let key = Self.key(queueClass, address)
        taken.withLock { taken in
            let left = taken[key, default: 1] - 1
            taken[key] = left > 0 ? left : nil
        }
    }

    private static func key(_ queueClass: AdminOperation.QueueClass, _ address: String) -> Key {
        Key(queueClass: queueClass, unit: NetworkAddress(address)?.limitedUnit)
    }
}
