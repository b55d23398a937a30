internal import CountersignSQLite
internal import Foundation

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#endif

extension EventQueue {
    /// Seconds that a lease is good for: more than a request takes.
    static let leaseDuration: TimeInterval = 60

    /// Makes this holder the only one that sends.
    ///
    /// The time is the machine's uptime, which all processes share and nobody can set. A lease of a process that is gone
    /// lapses at once.
    ///
    /// - Returns: Nil if it is the holder now, or the uptime at which the other one's lease lapses.
    func acquireLease(for holder: LeaseHolder, uptime: TimeInterval) throws -> TimeInterval? {
        if let lease = try lease(), lease.holder == holder.id,
            lease.until - uptime > Self.leaseDuration / 2, lease.until - uptime <= Self.leaseDuration
        {
            return nil
        }
        return try connection.transaction {
            if let lease = try lease(), lease.holder != holder.id, lease.until > uptime,
                // After a restart of the machine its uptime begins anew, and an old lease looks far ahead.
                lease.until - uptime <= Self.leaseDuration,
                LeaseHolder.isAlive(lease.holder, processID: lease.processID)
            {
                return lease.until
            }
            try connection.run(
                """
                INSERT INTO lease (id, holder, process_id, until_uptime_ms) VALUES (1, ?1, ?2, ?3)
                ON CONFLICT (id) DO UPDATE SET holder = ?1, process_id = ?2, until_uptime_ms = ?3
                """,
                .text(holder.id), .integer(Int64(getpid())),
                .integer(Int64((uptime + Self.leaseDuration) * 1_000)))
            return nil
        }
    }

    /// Lets others send.
    func releaseLease(of holder: LeaseHolder) throws {
        guard try lease()?.holder == holder.id else { return }
        try connection.run("DELETE FROM lease WHERE holder = ?", .text(holder.id))
    }

    private func lease() throws -> (holder: String, processID: Int32, until: TimeInterval)? {
        try connection.first("SELECT holder, process_id, until_uptime_ms FROM lease") {
            row throws(SQLiteError) in
            (row.text(0), Int32(truncatingIfNeeded: row.int64(1)), TimeInterval(row.int64(2)) / 1_000)
        }
    }
}
