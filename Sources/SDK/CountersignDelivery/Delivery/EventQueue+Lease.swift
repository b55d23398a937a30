internal import CountersignCore
internal import CountersignSQLite
internal import Foundation

extension EventQueue {
    /// Seconds in addition to the duration of the request.
    static let leaseMargin: TimeInterval = 30
    /// Seconds. A longer lease counts as damaged and is ignored, because it would prevent all clients from sending.
    private static let longestLease: TimeInterval = 3_600

    /// Returns nil on success, or the uptime at which another client's lease expires. The lease outlasts the next
    /// request.
    ///
    /// Uptime cannot be set and is the same in all processes. The lease of an ended process expires at once. If the
    /// disk is too full to store the lease, the holder sends without it unless another lease is valid: sending frees
    /// space, and the server drops duplicates.
    func acquireLease(
        for holder: LeaseOwner, uptime: TimeInterval, request seconds: TimeInterval
    ) throws -> TimeInterval? {
        let duration = min(seconds + Self.leaseMargin, Self.longestLease)
        if let lease = try lease(), lease.holder == holder.id, lease.isValid(at: uptime),
            lease.until - uptime > seconds + Self.leaseMargin / 2
        {
            return nil
        }
        do {
            return try connection.transaction {
                if let until = try otherLease(than: holder, uptime: uptime) { return until }
                try connection.run(
                    """
                    INSERT INTO lease (id, holder, process_id, until_uptime_ms, duration_ms)
                    VALUES (1, ?1, ?2, ?3, ?4) ON CONFLICT (id)
                    DO UPDATE SET holder = ?1, process_id = ?2, until_uptime_ms = ?3, duration_ms = ?4
                    """,
                    .text(holder.id), .integer(Int64(getpid())),
                    .integer(Milliseconds(seconds: uptime + duration).count),
                    .integer(Milliseconds(seconds: duration).count))
                return nil
            }
        } catch let error as SQLiteError where error.isFull {
            if let until = try otherLease(than: holder, uptime: uptime) { return until }
            return holder.acquire(connection.path, uptime: uptime, duration: duration)
        }
    }

    private func otherLease(than holder: LeaseOwner, uptime: TimeInterval) throws -> TimeInterval? {
        guard let lease = try lease(), lease.holder != holder.id, lease.isValid(at: uptime),
            LeaseOwner.isAlive(lease.holder, processID: lease.processID)
        else { return nil }
        return lease.until
    }

    func releaseLease(of holder: LeaseOwner) throws {
        holder.release(connection.path)
        guard try lease()?.holder == holder.id else { return }
        try connection.run("DELETE FROM lease WHERE holder = ?", .text(holder.id))
    }

    private struct Lease {
        let holder: String
        let processID: Int32
        let until: TimeInterval
        let duration: TimeInterval

        /// A reboot resets the uptime, so an old lease may seem to end far in the future.
        func isValid(at uptime: TimeInterval) -> Bool {
            until > uptime && until - uptime <= min(duration, EventQueue.longestLease)
        }
    }

    private func lease() throws -> Lease? {
        try connection.first("SELECT holder, process_id, until_uptime_ms, duration_ms FROM lease") {
            row throws(SQLiteError) in
            Lease(
                holder: row.text(0), processID: Int32(truncatingIfNeeded: row.int64(1)),
                until: Milliseconds(row.int64(2)).seconds,
                duration: Milliseconds(row.int64(3)).seconds)
        }
    }
}
