internal import CountersignSQLite
internal import GatewayModel

/// Deletes events and customers that are older or more than an app keeps, a few at a time. Used by the writer's thread.
///
/// It walks each app's events from the oldest on and remembers how far it came, so an event is looked at once whatever
/// the number of sweeps. Freed pages are used again; the file itself does not shrink.
struct RetentionSweeper {
    /// Rows that one step looks at and rows that it deletes, so that a request never waits long for it.
    static let rowsPerStep = 200
    /// A step stops deleting once it has reached this many bytes.
    static let bytesPerStep: Int64 = 4 << 20

    /// The tables of it in `events.sqlite`.
    static let script = """
        CREATE TABLE app_usage (
            app_id TEXT PRIMARY KEY,
            events INTEGER NOT NULL,
            bytes INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO app_usage
            SELECT app_id, count(*), sum(length(CAST(body AS BLOB))) FROM event GROUP BY app_id;
        CREATE TABLE retention_mark (
            app_id TEXT PRIMARY KEY,
            seq INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    private var waiting: [(appID: String, rules: AppRules)] = []
    private var nowMilliseconds: Int64 = 0

    /// True when there is nothing left to do in this sweep.
    var isDone: Bool { waiting.isEmpty }

    /// Begins a sweep over the apps that do not keep everything.
    mutating func begin(_ rules: [String: AppRules], nowMilliseconds: Int64) {
        self.nowMilliseconds = nowMilliseconds
        waiting = rules.filter { $0.value.retentionDays != nil || $0.value.retentionBytes != nil }
            .map { (appID: $0.key, rules: $0.value) }
    }

    /// Leaves an app out of this sweep: it is deleted as a whole.
    mutating func leave(_ appID: String) {
        waiting.removeAll { $0.appID == appID }
    }

    /// Does a part of the sweep in a transaction of its own. The apps take turns.
    ///
    /// `counting` completes the counts of apps first, in the same transaction. `hasEvents` says whether an app's user has an
    /// event after one; `forgotten` hears of those that had none. Returns the consumers that events were
    /// held for in vain: they were deleted before these had read them.
    @discardableResult
    mutating func step(
        _ connection: SQLiteConnection, counting: () throws -> Void = {},
        hasEvents: (String, String, Int64) throws -> Bool,
        forgotten: (String, String) -> Void = { _, _ in }
    ) throws -> [EventConsumerID] {
        guard let (appID, rules) = waiting.first else { return [] }
        let app = AppSweep(id: appID, connection: connection)
        let cutoff = rules.retentionDays.map { nowMilliseconds - Int64($0) * 86_400_000 } ?? Int64.min
        var gone: [String] = []
        var hold = try RetentionHold(
            of: appID, connection, nowMilliseconds: nowMilliseconds, days: rules.retentionDays ?? 0)
        let goesOn = try connection.transaction {
            try counting()
            return try app.sweep(cutoff, rules.retentionBytes, &hold) { users, reached in
                gone = try users.filter { try !hasEvents(appID, $0, reached) }
                for user in users { try app.forget(user, until: reached, isGone: gone.contains(user)) }
            }
        }
        for user in gone { forgotten(appID, user) }
        waiting.removeFirst()
        if goesOn { waiting.append((appID, rules)) }
        return hold.newlyPassed
    }

    /// What a step may still delete.
    private struct Room {
        var rows = RetentionSweeper.rowsPerStep
        var bytes = RetentionSweeper.bytesPerStep
        var isUsedUp: Bool { rows <= 0 || bytes <= 0 }
    }

    private struct Customer {
        let id: String
        let seenMilliseconds: Int64
        let bytes: Int64
    }

    /// One app in one step.
    private struct AppSweep {
        let id: String
        let connection: SQLiteConnection

        /// Returns true when there may be more to delete.
        func sweep(
            _ cutoff: Int64, _ limit: Int?, _ hold: inout RetentionHold,
            usersOfDeleted: (Set<String>, Int64) throws -> Void
        ) throws -> Bool {
            var room = Room()
            // Customers first: a look at an index tells whether there is anything to do.
            while let customer = try oldestCustomer(), customer.seenMilliseconds < cutoff {
                _ = try forget(customer, &room)
                if room.isUsedUp { return true }
            }
            var excess = try limit.map { try bytes() - Int64($0) } ?? 0
            let before = try mark()
            // Not their bodies: a row whose body is long fills many pages.
            let rows = try connection.all(
                """
                SELECT seq, CASE WHEN app_id = ?1 THEN received_ms END
                FROM event WHERE seq > ?2 ORDER BY seq LIMIT ?3
                """, .text(id), .integer(before), .integer(Int64(RetentionSweeper.rowsPerStep))
            ) { (seq: $0.int64(0), received: $0.isNull(1) ? nil : $0.int64(1)) }
            var reached = before
            var deleted: (events: Int64, bytes: Int64) = (0, 0)
            var users: Set<String> = []
            var isComplete = rows.count < RetentionSweeper.rowsPerStep
            var isHeld = false
            for row in rows where !room.isUsedUp {
                if let received = row.received {
                    // Of events and customers that are too much the older go first.
                    if received >= cutoff { try forgetExcess(&excess, seenUntil: received, &room) }
                    if room.isUsedUp { break }
                    guard received < cutoff || excess > 0 else {
                        isComplete = true
                        break
                    }
                    if hold.holds(row.seq, received: received) {
                        (isComplete, isHeld) = (true, true)
                        break
                    }
                    let (bytes, user) = try delete(event: row.seq)
                    hold.noteDeleted(row.seq)
                    if let user { users.insert(user) }
                    deleted = (deleted.events + 1, deleted.bytes + bytes)
                    excess -= bytes
                    room.rows -= 1
                    room.bytes -= bytes
                }
                reached = row.seq
            }
            // Customers do not pay for events that a consumer has not read.
            if isComplete, !isHeld { try forgetExcess(&excess, seenUntil: .max, &room) }
            try note(reached, before, deleted)
            try hold.write(connection)
            try usersOfDeleted(users, reached)
            return room.isUsedUp || !isComplete
        }

        private func bytes() throws -> Int64 {
            try connection.first(
                "SELECT bytes + customer_bytes FROM app_usage WHERE app_id = ?1", .text(id)
            ) { $0.int64(0) } ?? 0
        }

        private func mark() throws -> Int64 {
            try connection.first("SELECT seq FROM retention_mark WHERE app_id = ?1", .text(id)) {
                $0.int64(0)
            } ?? 0
        }

        /// Deletes an event and returns its bytes and its user.
        private func delete(event seq: Int64) throws -> (bytes: Int64, user: String?) {
            try connection.first(
                "DELETE FROM event WHERE seq = ?1 RETURNING length(CAST(body AS BLOB)), user_id",
                .integer(seq)
            ) { ($0.int64(0), $0.optionalText(1)) } ?? (0, nil)
        }

        /// Forgets what was kept of a user beside the events that were deleted.
        func forget(_ user: String, until reached: Int64, isGone: Bool) throws {
            try connection.run(
                "DELETE FROM event_claim WHERE app_id = ?1 AND user_id = ?2 AND seq <= ?3", .text(id),
                .text(user),
                .integer(reached))
            guard isGone else { return }
            try connection.run(
                "DELETE FROM app_user WHERE app_id = ?1 AND user_id = ?2", .text(id), .text(user))
        }

        private func note(_ reached: Int64, _ before: Int64, _ deleted: (events: Int64, bytes: Int64)) throws
        {
            if reached > before {
                try connection.run(
                    """
                    INSERT INTO retention_mark VALUES (?1, ?2) ON CONFLICT (app_id) DO UPDATE SET seq = ?2
                    """, .text(id), .integer(reached))
            }
            if deleted.events > 0 {
                try connection.run(
                    "UPDATE app_usage SET events = events - ?2, bytes = bytes - ?3 WHERE app_id = ?1",
                    .text(id), .integer(deleted.events), .integer(deleted.bytes))
            }
        }

        private func oldestCustomer() throws -> Customer? {
            try connection.first(
                "SELECT id, seen_ms, bytes FROM customer WHERE app_id = ?1 ORDER BY seen_ms LIMIT 1",
                .text(id)
            ) { Customer(id: $0.text(0), seenMilliseconds: $0.int64(1), bytes: $0.int64(2)) }
        }

        /// Forgets customers who were not seen later, the longest ago first, until there is no excess.
        private func forgetExcess(
            _ excess: inout Int64, seenUntil milliseconds: Int64, _ room: inout Room
        ) throws {
            while excess > 0, !room.isUsedUp, let customer = try oldestCustomer(),
                customer.seenMilliseconds <= milliseconds
            {
                excess -= try forget(customer, &room)
            }
        }

        /// Forgets a customer, or a part of one that has much; returns the bytes.
        private func forget(_ customer: Customer, _ room: inout Room) throws -> Int64 {
            // Of one that has more than a step may delete, a few rows at a time: any of them may be long.
            let rows = min(room.rows, customer.bytes > RetentionSweeper.bytesPerStep ? 8 : .max)
            let isWhole = try forgetRows(of: customer.id, rows, &room)
            let kept =
                isWhole
                ? 0
                : try connection.first("SELECT bytes FROM customer WHERE id = ?1", .text(customer.id)) {
                    $0.int64(0)
                } ?? 0
            if isWhole {
                try connection.run("DELETE FROM customer WHERE id = ?1", .text(customer.id))
                room.rows -= 1
            }
            room.bytes -= customer.bytes - kept
            return customer.bytes - kept
        }

        /// Returns false when there may be more rows.
        private func forgetRows(of customer: String, _ most: Int, _ room: inout Room) throws -> Bool {
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
                room.rows -= connection.changes
                if left <= 0 { return false }
            }
            return true
        }
    }
}
