internal import CountersignCore
internal import CountersignSQLite
internal import GatewayModel

/// Deletes events and customers beyond each app's retention, in small steps on the writer's thread.
///
/// The index finds an app's oldest event. The event's time is cached, so an app without expired events needs no query
/// on events and no transaction. SQLite reuses the freed pages; the file does not shrink.
struct RetentionSweeper {
    /// Queries on the index and the log.
    struct Events {
        var newest: Int64
        /// Bytes of an app's events that `app_usage` does not count yet.
        var uncountedBytes: (_ appID: String) -> Int64 = { _ in 0 }
        /// Up to `limit` events of an app after a number, oldest first. Some may be deleted.
        var ofApp: (_ appID: String, _ after: Int64, _ limit: Int) throws -> [Int64]
        var hasAny: (_ appID: String, _ userID: String, _ after: Int64) throws -> Bool
    }

    /// Maximum rows per step, so that requests wait only briefly.
    static let rowsPerStep = 200
    static let appsPerStep = 100
    /// A step stops deleting once it has reached this many bytes.
    static let bytesPerStep: Int64 = 4 << 20

    /// The tables of retention in `events.sqlite`.
    static let script = """
        CREATE TABLE app_usage (
            app_id TEXT PRIMARY KEY,
            events INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            customer_bytes INTEGER NOT NULL DEFAULT 0
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE retention_mark (
            app_id TEXT PRIMARY KEY,
            seq INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private struct Oldest {
        /// The app has no event up to this sequence number.
        var after: Int64
        /// The next event's time of receipt; nil if it is unknown or there is no event.
        var receivedMilliseconds: Int64?
    }

    private var waiting: [(appID: String, rules: AppRules)] = []
    private var nowMilliseconds: Int64 = 0
    /// The oldest event of each app, cached from one sweep to the next.
    private var oldest: BytewiseDictionary<Oldest> = [:]

    var isDone: Bool { waiting.isEmpty }

    mutating func begin(_ rules: BytewiseDictionary<AppRules>, nowMilliseconds: Int64) {
        self.nowMilliseconds = nowMilliseconds
        waiting = rules.filter { $0.value.retentionDays != nil || $0.value.retentionBytes != nil }
            .map { (appID: $0.key, rules: $0.value) }
        oldest = oldest.filter { rules[$0.key] != nil }
    }

    /// Excludes an app from the sweep, because all of its data is being deleted.
    mutating func exclude(_ appID: String) {
        waiting.removeAll { $0.appID == appID }
        oldest[appID] = nil
    }

    /// Performs a step for the next app with expired data, in one transaction. An app with more to delete is queued
    /// again after other apps. `counting` completes the counts first. `removedUser` receives users without remaining
    /// events. Returns consumers whose hold expired, so that unread events were deleted.
    @discardableResult
    mutating func step(
        _ connection: SQLiteConnection, _ events: Events, counting: () throws -> Void = {},
        removedUser: (String, String) -> Void = { _, _ in }
    ) throws -> [EventConsumerID] {
        for _ in 0..<Self.appsPerStep {
            guard let (appID, rules) = waiting.first else { return [] }
            let app = AppSweep(id: appID, connection: connection, events: events)
            if try isDue(app, rules) {
                return try delete(of: app, rules, counting: counting, removedUser: removedUser)
            }
            waiting.removeFirst()
        }
        return []
    }

    private func cutoff(_ rules: AppRules) -> Int64 {
        rules.retentionDays.map { nowMilliseconds - Int64($0) * 86_400_000 } ?? Int64.min
    }

    /// Whether an event or a customer must be deleted. Reads without a transaction.
    private mutating func isDue(_ app: AppSweep, _ rules: AppRules) throws -> Bool {
        if let limit = rules.retentionBytes,
            try app.bytes() + app.events.uncountedBytes(app.id) > Int64(limit)
        {
            return true
        }
        let cutoff = cutoff(rules)
        if let customer = try app.oldestCustomer(), customer.seenMilliseconds < cutoff { return true }
        var known = try oldest[app.id] ?? Oldest(after: app.position())
        if known.receivedMilliseconds == nil, known.after < app.events.newest {
            known = try app.oldest(after: known.after)
            oldest[app.id] = known
        }
        // If the index found only deleted events, the app is due, so that a step advances past these events.
        guard let received = known.receivedMilliseconds else { return known.after < app.events.newest }
        return received < cutoff
    }

    private mutating func delete(
        of app: AppSweep, _ rules: AppRules, counting: () throws -> Void,
        removedUser: (String, String) -> Void
    ) throws -> [EventConsumerID] {
        let (appID, connection, cutoff) = (app.id, app.connection, cutoff(rules))
        var gone: [String] = []
        var hold = try RetentionHold(
            of: appID, connection, nowMilliseconds: nowMilliseconds, days: rules.retentionDays ?? 0)
        let (goesOn, remaining) = try connection.transaction {
            try counting()
            let known = try oldest[appID] ?? Oldest(after: app.position())
            return try app.sweep(cutoff, rules.retentionBytes, from: known, &hold) { users, sequence in
                gone = try users.filter { try !app.events.hasAny(appID, $0, sequence) }
                for user in users { try app.deleteUser(user, until: sequence, isGone: gone.contains(user)) }
            }
        }
        oldest[appID] = remaining
        for user in gone { removedUser(appID, user) }
        waiting.removeFirst()
        if goesOn { waiting.append((appID, rules)) }
        return hold.newlyPassed
    }

    private struct StepBudget {
        var rows = RetentionSweeper.rowsPerStep
        var bytes = RetentionSweeper.bytesPerStep
        var isUsedUp: Bool { rows <= 0 || bytes <= 0 }
    }

    private struct Customer {
        let id: String
        let seenMilliseconds: Int64
        let bytes: Int64
    }

    private struct AppSweep {
        let id: String
        let connection: SQLiteConnection
        let events: Events

        func oldest(after sequence: Int64) throws -> Oldest {
            let found = try events.ofApp(id, sequence, RetentionSweeper.rowsPerStep)
            for sequence in found {
                if let received = try received(sequence) {
                    return Oldest(after: sequence - 1, receivedMilliseconds: received)
                }
            }
            let isEnd = found.count < RetentionSweeper.rowsPerStep
            return Oldest(after: isEnd ? events.newest : found.last ?? sequence)
        }

        /// Returns whether there may be more to delete, and the app's oldest remaining event.
        func sweep(
            _ cutoff: Int64, _ limit: Int?, from known: Oldest, _ hold: inout RetentionHold,
            usersOfDeleted: (BytewiseSet, Int64) throws -> Void
        ) throws -> (goesOn: Bool, oldest: Oldest) {
            var budget = StepBudget()
            // Deletes expired customers first, because `excess` includes the bytes of all remaining customers.
            while let customer = try oldestCustomer(), customer.seenMilliseconds < cutoff {
                _ = try deleteCustomer(customer, &budget)
                if budget.isUsedUp { return (true, known) }
            }
            var excess = try limit.map { try bytes() - Int64($0) } ?? 0
            let found = try events.ofApp(id, known.after, RetentionSweeper.rowsPerStep)
            var oldest = Oldest(after: known.after)
            var deleted: (events: Int64, bytes: Int64) = (0, 0)
            var users: BytewiseSet = []
            var isComplete = found.count < RetentionSweeper.rowsPerStep
            var isHeld = false
            for sequence in found where !budget.isUsedUp {
                if let received = try received(sequence) {
                    // While the app exceeds its size limit, deletes customers not seen since this event.
                    if received >= cutoff { try deleteExcessCustomers(&excess, seenUntil: received, &budget) }
                    if budget.isUsedUp { break }
                    isHeld = hold.holds(sequence, received: received)
                    guard received < cutoff || excess > 0, !isHeld else {
                        isComplete = true
                        oldest.receivedMilliseconds = received
                        break
                    }
                    let (bytes, user) = try delete(event: sequence)
                    hold.noteDeleted(sequence)
                    if let user { users.insert(user) }
                    deleted = (deleted.events + 1, deleted.bytes + bytes)
                    excess -= bytes
                    budget.rows -= 1
                    budget.bytes -= bytes
                }
                oldest.after = sequence
            }
            // Customers are not deleted to compensate for events that a consumer holds.
            if isComplete, !isHeld { try deleteExcessCustomers(&excess, seenUntil: .max, &budget) }
            try note(oldest.after, deleted)
            try hold.write(connection)
            try usersOfDeleted(users, oldest.after)
            return (budget.isUsedUp || !isComplete, oldest)
        }

        /// The time of receipt; nil if the event is deleted. Does not read the body, which may fill many pages.
        private func received(_ sequence: Int64) throws -> Int64? {
            try connection.first(
                "SELECT received_ms FROM event WHERE seq = ?1 AND app_id = ?2", .integer(sequence), .text(id)
            ) { $0.int64(0) }
        }

        func bytes() throws -> Int64 {
            try connection.first(
                "SELECT bytes + customer_bytes FROM app_usage WHERE app_id = ?1", .text(id)
            ) { $0.int64(0) } ?? 0
        }

        func position() throws -> Int64 {
            try connection.first("SELECT seq FROM retention_mark WHERE app_id = ?1", .text(id)) {
                $0.int64(0)
            } ?? 0
        }

        private func delete(event seq: Int64) throws -> (bytes: Int64, user: String?) {
            try connection.first(
                "DELETE FROM event WHERE seq = ?1 RETURNING length(CAST(body AS BLOB)), user_id",
                .integer(seq)
            ) { ($0.int64(0), $0.optionalText(1)) } ?? (0, nil)
        }

        /// Deletes a user's `event_claim` rows of deleted events, and the user's `app_user` row if no events remain.
        func deleteUser(_ user: String, until sequence: Int64, isGone: Bool) throws {
            try connection.run(
                "DELETE FROM event_claim WHERE app_id = ?1 AND user_id = ?2 AND seq <= ?3", .text(id),
                .text(user), .integer(sequence))
            guard isGone else { return }
            try connection.run(
                "DELETE FROM app_user WHERE app_id = ?1 AND user_id = ?2", .text(id), .text(user))
        }

        private func note(_ sequence: Int64, _ deleted: (events: Int64, bytes: Int64)) throws {
            guard deleted.events > 0 else { return }
            try connection.run(
                """
                INSERT INTO retention_mark VALUES (?1, ?2) ON CONFLICT (app_id) DO UPDATE SET seq = ?2
                """, .text(id), .integer(sequence))
            try connection.run(
                "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                .text(id), .integer(deleted.events), .integer(deleted.bytes))
        }

        func oldestCustomer() throws -> Customer? {
            try connection.first(
                "SELECT id, seen_ms, bytes FROM customer WHERE app_id = ?1 ORDER BY seen_ms LIMIT 1",
                .text(id)
            ) { Customer(id: $0.text(0), seenMilliseconds: $0.int64(1), bytes: $0.int64(2)) }
        }

        /// Deletes customers last seen at or before a time, the oldest first, while the size limit is exceeded.
        private func deleteExcessCustomers(
            _ excess: inout Int64, seenUntil milliseconds: Int64, _ budget: inout StepBudget
        ) throws {
            while excess > 0, !budget.isUsedUp, let customer = try oldestCustomer(),
                customer.seenMilliseconds <= milliseconds
            {
                excess -= try deleteCustomer(customer, &budget)
            }
        }

        /// Deletes a customer, or a part of a large customer. Returns the deleted bytes.
        private func deleteCustomer(_ customer: Customer, _ budget: inout StepBudget) throws -> Int64 {
            // Deletes fewer rows at a time from a large customer, because each row may be long.
            let rows = min(budget.rows, customer.bytes > RetentionSweeper.bytesPerStep ? 8 : .max)
            let isWhole = try deleteRows(of: customer.id, rows, &budget)
            let kept =
                isWhole
                ? 0
                : try connection.first("SELECT bytes FROM customer WHERE id = ?1", .text(customer.id)) {
                    $0.int64(0)
                } ?? 0
            if isWhole {
                try connection.run("DELETE FROM customer WHERE id = ?1", .text(customer.id))
                budget.rows -= 1
            }
            budget.bytes -= customer.bytes - kept
            return customer.bytes - kept
        }

        /// Returns false when more rows may remain.
        private func deleteRows(of customer: String, _ most: Int, _ budget: inout StepBudget) throws -> Bool {
            var left = most
            for (table, owner, key) in [
                ("customer_property", "customer_id", "name"), ("inbox_read", "customer_id", "seq"),
                ("customer_identifier", "customer_id", "seq"),
                ("customer_merge", "destination_id", "source_id"),
            ] {
                try connection.run(
                    """
                    DELETE FROM \(table) WHERE \(owner) = ?1 AND \(key) IN (
                        SELECT \(key) FROM \(table) WHERE \(owner) = ?1 LIMIT ?2)
                    """, .text(customer), .integer(Int64(left)))
                left -= connection.changes
                budget.rows -= connection.changes
                if left <= 0 { return false }
            }
            return true
        }
    }
}
