internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

enum EventTimeSearch {
    private static let dayMilliseconds: Int64 = 86_400_000

    /// The position before the first event received at or after a time. The search starts a minute before the time,
    /// because positions do not strictly follow the times of receipt. Clocks are set back, and requests take time.
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
        var reached = low
        var found: Int64?
        var count = 0
        try connection.each(
            """
            SELECT position, received_ms FROM event WHERE app_id = ?1 AND position > ?2 AND day >= ?3
            ORDER BY position LIMIT \(EventPage.mostLooked)
            """, [.text(appID), .integer(low), .integer(day)]
        ) { row in
            if row.int64(1) >= milliseconds {
                found = row.int64(0) - 1
                return false
            }
            reached = row.int64(0)
            count += 1
            return true
        }
        if let found { return found }
        return count < EventPage.mostLooked ? max(reached, head) : reached
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
