internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

enum EventTimeSearch {
    private static let dayMilliseconds: Int64 = 86_400_000
    /// The maximum number of slices of ``EventPage/maximumScanned`` events that a search reads: the events of a minute
    /// at a rate of 16,000 a second.
    private static let mostSlices = 100

    /// The position before the first event received at or after a time; lower if the search ends after its limit of
    /// events. The search starts a minute before the time, because positions do not strictly follow the times of
    /// receipt. Clocks are set back, and requests take time.
    static func before(
        _ milliseconds: Int64, of appID: String, head: Int64, _ connection: PostgreSQLConnection
    ) throws -> Int64 {
        // Events of earlier days precede the result, and events of later days follow it.
        let day = floorDay(milliseconds - 60_000)
        var low = try first(of: appID, fromDay: day, connection).map { $0 - 1 } ?? head
        var high = try max(low, first(of: appID, fromDay: floorDay(milliseconds) + 1, connection) ?? head)
        while low < high {
            let middle = low + (high - low) / 2
            let next = try connection.first(
                """
                SELECT position, received_ms FROM event WHERE app_id = ?1 AND position > ?2 AND day >= ?3
                ORDER BY position LIMIT 1
                """, .text(appID), .integer(middle), .integer(day)
            ) { (position: $0.int64(0), received: $0.int64(1)) }
            if let next, next.received < milliseconds - 60_000 { low = next.position } else { high = middle }
        }
        for _ in 0..<mostSlices {
            let slice = try connection.first(
                """
                SELECT count(*), max(position), min(position) FILTER (WHERE received_ms >= ?4) FROM (
                    SELECT position, received_ms FROM event WHERE app_id = ?1 AND position > ?2 AND day >= ?3
                    ORDER BY position LIMIT \(EventPage.maximumScanned)) AS slice
                """, .text(appID), .integer(low), .integer(day), .integer(milliseconds)
            ) { (count: $0.int(0), last: $0.optionalInt64(1), found: $0.optionalInt64(2)) }
            if let found = slice?.found { return found - 1 }
            low = slice?.last ?? low
            if slice?.count != EventPage.maximumScanned { return max(low, head) }
        }
        return low
    }

    private static func floorDay(_ milliseconds: Int64) -> Int64 {
        milliseconds >= 0
            ? milliseconds / dayMilliseconds : (milliseconds - dayMilliseconds + 1) / dayMilliseconds
    }

    private static func first(
        of appID: String, fromDay day: Int64, _ connection: PostgreSQLConnection
    ) throws -> Int64? {
        try connection.first(
            "SELECT position FROM event WHERE app_id = ?1 AND day >= ?2 ORDER BY position LIMIT 1",
            .text(appID), .integer(day)
        ) { $0.int64(0) }
    }
}
