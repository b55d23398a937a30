internal import CountersignCore
internal import CountersignSQLite

/// How enforcement goes on by itself. A running gateway sees a change within a second.
extension AppDirectory {
    /// Sets how strictly an app is judged, for all of its users, and forgets what was scheduled.
    ///
    /// - Throws: `notFound`, `storage`.
    public func setEnforcement(_ enforcement: Enforcement, for appID: String) throws(GatewayError) {
        var plan = try enforcementPlan(of: appID)
        plan.state = enforcement
        plan.rampPercent = 100
        plan.scheduled = nil
        try setEnforcementPlan(plan, for: appID)
    }

    /// How strictly an app is judged.
    ///
    /// - Throws: `notFound`, `storage`.
    package func enforcementPlan(of appID: String) throws(GatewayError) -> EnforcementPlan {
        guard let plan = try enforcementPlans()[appID] else { throw Self.noApp(appID) }
        return plan
    }

    /// The plans of all apps, by id.
    func enforcementPlans() throws(GatewayError) -> [String: EnforcementPlan] {
        try read { try Self.plans($0) }
    }

    /// Sets how strictly an app is judged; what an automatic return has left is forgotten.
    ///
    /// - Throws: `invalid` for a number out of its range, `notFound`, `storage`.
    package func setEnforcementPlan(
        _ plan: EnforcementPlan, for appID: String, at milliseconds: Int64? = nil
    ) throws(GatewayError) {
        for (state, percent) in [
            (plan.state, plan.rampPercent),
            plan.scheduled.map { ($0.state, $0.rampPercent) } ?? (.disabled, 100),
        ] {
            guard (1...100).contains(percent), state == .required || percent == 100 else {
                throw GatewayError(
                    .invalid,
                    "ramp_percent must be 1 to 100, and less than 100 stands beside the state required only")
            }
        }
        if let rule = plan.autoReturn {
            guard (1...100).contains(rule.rejectedPercent), (1...60).contains(rule.windowMinutes),
                (1...1_000_000_000).contains(rule.minimumRequests)
            else {
                throw GatewayError(
                    .invalid,
                    "auto_return needs rejected_percent 1 to 100, window_minutes 1 to 60 and minimum_requests of at least 1"
                )
            }
        }
        var plan = plan
        plan.returned = nil
        let changed = plan
        try write { sqlite in
            if let now = try Self.plans(sqlite)[appID], now == changed.since(now.sinceMilliseconds) { return }
            try change(changed, of: appID, "enforcement.set", at: milliseconds ?? Self.now(), sqlite)
        }
    }

    /// Makes the switches that are due.
    ///
    /// - Returns: The apps that were switched.
    func switchScheduled(at milliseconds: Int64) throws(GatewayError) -> [String] {
        let due = try enforcementPlans().filter {
            $0.value.scheduled.map { $0.atMilliseconds <= milliseconds } ?? false
        }
        if due.isEmpty { return [] }
        return try write { sqlite in
            try due.keys.sorted().filter { appID in
                // Somebody may have changed it meanwhile.
                guard var plan = try Self.plans(sqlite)[appID], let planned = plan.scheduled,
                    planned.atMilliseconds <= milliseconds
                else { return false }
                plan.state = planned.state
                plan.rampPercent = planned.rampPercent
                plan.scheduled = nil
                plan.returned = nil
                try change(plan, of: appID, "enforcement.scheduled", at: milliseconds, sqlite)
                return true
            }
        }
    }

    /// Takes an app back from `required` to `optional`, and has its webhook told.
    ///
    /// - Parameters:
    ///   - appID: The app.
    ///   - rejectedPercent: Of the requests that were judged.
    ///   - alert: The body for the webhook.
    ///   - milliseconds: Milliseconds since 1970.
    /// - Returns: False when it is no longer required.
    /// - Throws: `storage`.
    func returnToOptional(
        _ appID: String, rejectedPercent: Double, alert: JSONValue, at milliseconds: Int64
    ) throws(GatewayError) -> Bool {
        try write { sqlite in
            guard var plan = try Self.plans(sqlite)[appID], plan.state == .required else { return false }
            plan.state = .optional
            plan.rampPercent = 100
            plan.returned = .init(atMilliseconds: milliseconds, rejectedPercent: rejectedPercent)
            try change(plan, of: appID, "enforcement.returned", at: milliseconds, sqlite)
            try addAlert(alert, of: appID, at: milliseconds, sqlite)
            return true
        }
    }

    private func change(
        _ plan: EnforcementPlan, of appID: String, _ action: String, at milliseconds: Int64,
        _ sqlite: SQLiteConnection
    ) throws {
        guard let before = try Self.plans(sqlite)[appID] else { throw Self.noApp(appID) }
        try sqlite.run(
            "UPDATE app SET enforcement = ? WHERE id = ?", .text(plan.state.rawValue), .text(appID))
        let since = before.state == plan.state ? before.sinceMilliseconds : milliseconds
        try sqlite.run(
            "INSERT OR REPLACE INTO enforcement_plan VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            .text(appID), .integer(Int64(plan.rampPercent)),
            .optionalText(plan.scheduled?.state.rawValue),
            .optionalInteger(plan.scheduled?.atMilliseconds),
            .optionalInteger(plan.autoReturn.map { Int64($0.rejectedPercent) }),
            .optionalInteger(plan.autoReturn.map { Int64($0.windowMinutes) }),
            .optionalInteger(plan.autoReturn.map { Int64($0.minimumRequests) }),
            .optionalInteger(plan.returned?.atMilliseconds),
            plan.returned.map { .real($0.rejectedPercent) } ?? .null, .integer(since),
            .optionalInteger(plan.scheduled.map { Int64($0.rampPercent) }))
        try audit(
            sqlite, action, plan.state.rawValue, app: appID, before: before.json, after: plan.json,
            at: milliseconds)
    }

    private static func plans(_ sqlite: SQLiteConnection) throws -> [String: EnforcementPlan] {
        let rows = try sqlite.all(
            """
            SELECT id, enforcement, ramp_percent, scheduled_state, scheduled_ms, return_percent, return_minutes,
                return_requests, returned_ms, returned_percent, since_ms, created_ms, scheduled_ramp
            FROM app LEFT JOIN enforcement_plan ON app_id = id
            """
        ) { row in
            var plan = EnforcementPlan()
            plan.state = Enforcement(rawValue: row.text(1)) ?? .required
            plan.rampPercent = row.isNull(2) ? 100 : row.int(2)
            if let state = Enforcement(rawValue: row.text(3)) {
                plan.scheduled = .init(
                    state: state, atMilliseconds: row.int64(4),
                    rampPercent: row.isNull(12) ? 100 : row.int(12))
            }
            if !row.isNull(5) {
                plan.autoReturn = .init(
                    rejectedPercent: row.int(5), windowMinutes: row.int(6), minimumRequests: row.int(7))
            }
            if !row.isNull(8) {
                plan.returned = .init(atMilliseconds: row.int64(8), rejectedPercent: row.double(9))
            }
            plan.sinceMilliseconds = row.isNull(10) ? row.int64(11) : row.int64(10)
            return (row.text(0), plan)
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }
}
