internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// Wakes waiters for events that other gateways stored, or that became readable when an earlier transaction ended.
final class ArrivalWatch: @unchecked Sendable {
    private let pool: PostgreSQLPool
    private let arrivals: EventArrivals
    private let queue = DispatchQueue(label: "event arrivals")
    private let ticker: Ticker
    // Accessed on `queue` only.
    private var scanned: Int64 = 0
    private var known: BytewiseSet = []

    init(_ pool: PostgreSQLPool, _ arrivals: EventArrivals) {
        self.pool = pool
        self.arrivals = arrivals
        ticker = Ticker(queue: queue, everySeconds: 0.25)
    }

    func start() {
        ticker.start { [weak self] in self?.poll() }
    }

    /// Returns after a running poll has ended.
    func stop() {
        ticker.stop()
        queue.sync {}
    }

    /// Does nothing without waiters. Errors are retried at the next interval.
    private func poll() {
        let awaited = arrivals.awaited
        guard !awaited.isEmpty else {
            known = []
            return
        }
        let found = try? pool.use { connection in
            let head = try EventHorizon.head(connection)
            // Always wakes apps that had no waiters at the last poll, because that poll did not search them for events.
            var apps = awaited.filter { !known.contains($0) }
            let rest = awaited.filter { known.contains($0) }
            if head > scanned, !rest.isEmpty {
                var parameters = Parameters()
                parameters.add(texts: rest)
                parameters.add(.integer(scanned))
                parameters.add(.integer(head))
                try connection.each(
                    """
                    SELECT app FROM unnest($1) AS app WHERE EXISTS (
                        SELECT 1 FROM event WHERE app_id = app AND position > $2 AND position <= $3)
                    """, parameters
                ) { row in
                    apps.append(row.text(0))
                    return true
                }
            }
            (scanned, known) = (head, BytewiseSet(awaited))
            return apps
        }
        if let found, !found.isEmpty { arrivals.note(BytewiseSet(found)) }
    }
}
