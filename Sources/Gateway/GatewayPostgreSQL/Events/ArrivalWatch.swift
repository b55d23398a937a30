internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel

/// Wakes waiters for events that other gateways stored, or that became readable when an earlier transaction ended.
final class ArrivalWatch: @unchecked Sendable {
    private static let seconds = 0.25

    private let pool: PostgreSQLPool
    private let arrivals: EventArrivals
    private let condition = Condition()
    private var isStopping = false
    private var hasEnded = false
    // Accessed by the thread only.
    private var looked: Int64 = 0
    private var known: BytewiseSet = []

    init(_ pool: PostgreSQLPool, _ arrivals: EventArrivals) {
        self.pool = pool
        self.arrivals = arrivals
    }

    func start() {
        let thread = Thread { [self] in
            condition.lock()
            while !isStopping {
                condition.unlock()
                look()
                condition.lock()
                if !isStopping { _ = condition.wait(until: .now() + Self.seconds) }
            }
            hasEnded = true
            condition.broadcast()
            condition.unlock()
        }
        thread.name = "event arrivals"
        thread.start()
    }

    func stop() {
        condition.lock()
        isStopping = true
        condition.broadcast()
        while !hasEnded { condition.wait() }
        condition.unlock()
    }

    /// Does nothing without waiters. Errors are retried at the next interval.
    private func look() {
        let awaited = arrivals.awaited
        guard !awaited.isEmpty else {
            known = []
            return
        }
        let found = try? pool.use { connection in
            let head = try EventHorizon.head(connection)
            // Always wakes apps without waiters at the last poll, which did not search these apps for new events.
            var apps = awaited.filter { !known.contains($0) }
            let rest = awaited.filter { known.contains($0) }
            if head > looked, !rest.isEmpty {
                var parameters = Parameters()
                parameters.add(texts: rest)
                parameters.add(.integer(looked))
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
            (looked, known) = (head, BytewiseSet(awaited))
            return apps
        }
        if let found, !found.isEmpty { arrivals.note(BytewiseSet(found)) }
    }
}
