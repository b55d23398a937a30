internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel
internal import GatewayStorage

extension EventPartitions {
    /// Limits the wait for a table lock, because other transactions queue behind a waiting lock request.
    static let lock = "BEGIN; SET LOCAL lock_timeout = 2000"

    static func days(of table: String, _ connection: PostgreSQLConnection) throws -> [Int] {
        try connection.all(
            """
            SELECT substr(relname, length(?1) + 2)::int FROM pg_inherits
            JOIN pg_class ON pg_class.oid = inhrelid
            WHERE inhparent = to_regclass('countersign.' || ?1) AND relname ~ '_[0-9]+$' ORDER BY 1
            """, .text(table)
        ) { $0.int(0) }
    }

    /// Drops the partitions of message ids that are older than ``idDays`` days.
    static func dropIDs(nowMilliseconds: Int64, _ connection: PostgreSQLConnection) throws {
        let first = Int(nowMilliseconds / 86_400_000) - idDays
        for day in try days(of: "message_id", connection) where day < first {
            try connection.transaction(lock) { try connection.execute("DROP TABLE message_id_\(day)") }
        }
    }

    /// Drops the partitions of days that no app retains. After each commit, reports consumers whose hold expired, so
    /// that unread events were deleted. To avoid a query, `keepers` caches an app that retains each remaining day.
    static func dropEvents(
        _ rules: BytewiseDictionary<AppRules>, nowMilliseconds: Int64, keepers: inout [Int: String],
        _ connection: PostgreSQLConnection, report: (EventConsumerID) -> Void
    ) throws {
        guard let shortest = rules.values.compactMap(\.retentionDays).min() else { return }
        let last = Int((nowMilliseconds - Int64(shortest) * 86_400_000) / 86_400_000) - 1
        for day in try days(of: "event", connection) where day <= last {
            let end = Int64(day + 1) * 86_400_000
            func keeps(_ app: String) -> Bool {
                guard let kept = rules[app]?.retentionDays else { return true }
                return end > nowMilliseconds - Int64(kept) * 86_400_000
            }
            if let keeper = keepers[day], rules[keeper] != nil, keeps(keeper) { continue }
            let apps = try apps(of: day, until: keeps, connection)
            keepers[day] = apps.keeper
            guard apps.keeper == nil else { continue }
            try connection.transaction(lock) {
                try drop(day, of: apps.others, rules, nowMilliseconds, connection)
            }.forEach(report)
        }
    }

    /// Finds the apps with events on a day by an index, one statement per app, until one retains the day.
    private static func apps(
        of day: Int, until keeps: (String) -> Bool, _ connection: PostgreSQLConnection
    ) throws -> (others: [String], keeper: String?) {
        var apps: [String] = []
        while true {
            let next = try connection.first(
                "SELECT app_id FROM event_\(day) WHERE app_id > ?1 ORDER BY app_id LIMIT 1",
                .text(apps.last ?? "")
            ) { $0.text(0) }
            guard let next else { return (apps, nil) }
            if keeps(next) { return (apps, next) }
            apps.append(next)
        }
    }

    private static func drop(
        _ day: Int, of apps: [String], _ rules: BytewiseDictionary<AppRules>, _ now: Int64,
        _ connection: PostgreSQLConnection
    ) throws -> [EventConsumerID] {
        // Waits for transactions that have stored events of that day, so that the sums include these events.
        try connection.execute("LOCK TABLE event_\(day) IN SHARE MODE")
        let sums = try connection.all(
            """
            SELECT app_id, count(*), sum(octet_length(body))::bigint, max(position) FROM event_\(day)
            GROUP BY app_id ORDER BY app_id
            """
        ) { (app: $0.text(0), events: $0.int(1), bytes: $0.int64(2), last: $0.int64(3)) }
        guard sums.allSatisfy({ apps.contains($0.app) }) else { return [] }
        var holds = try sums.map { sum in
            try RetentionHold(
                of: sum.app, connection, nowMilliseconds: now, days: rules[sum.app]?.retentionDays ?? 0)
        }
        // A partition with held events is kept without any change. The sweep deletes its other events one by one.
        let end = Int64(day + 1) * 86_400_000
        guard !zip(sums, holds).contains(where: { $1.holds($0.last, received: end - 1) }) else { return [] }
        for (index, sum) in sums.enumerated() {
            try EventErasure.uncount(sum.events, sum.bytes, of: sum.app, connection)
            holds[index].noteDeleted(sum.last)
            try holds[index].write(connection)
        }
        try connection.execute("DROP TABLE event_\(day)")
        return holds.flatMap(\.newlyPassed)
    }
}
