internal import CountersignCore
internal import Foundation

/// The identity of one client, which may hold the lease of a queue.
package final class LeaseOwner: Sendable {
    /// Ids of the holders in this process. Process ids alone are ambiguous, because the system reuses them.
    private static let living = Lock(Set<String>())

    /// Leases of queue files whose disk is full, by path.
    private static let unwritten = Lock([String: (holder: String, until: TimeInterval)]())

    package let id = UUIDv7.make()

    init() {
        Self.living.withLock { _ = $0.insert(id) }
    }

    deinit {
        Self.living.withLock { _ = $0.remove(id) }
    }

    /// Like `EventQueue.acquireLease`, but only among the clients of this process.
    func acquire(_ path: String, uptime: TimeInterval, duration: TimeInterval) -> TimeInterval? {
        Self.unwritten.withLock { leases in
            if let lease = leases[path], lease.holder != id, lease.until > uptime,
                Self.living.withLock({ $0.contains(lease.holder) })
            {
                return lease.until
            }
            leases[path] = (id, uptime + duration)
            return nil
        }
    }

    func release(_ path: String) {
        Self.unwritten.withLock { leases in
            if leases[path]?.holder == id { leases[path] = nil }
        }
    }

    static func isAlive(_ id: String, processID: Int32) -> Bool {
        if processID == getpid() { return living.withLock { $0.contains(id) } }
        // For 0 and negative numbers, `kill` addresses groups of processes.
        guard processID > 0 else { return false }
        // Other failures than `ESRCH` mean that the process exists.
        return kill(processID, 0) == 0 || errno != ESRCH
    }
}
