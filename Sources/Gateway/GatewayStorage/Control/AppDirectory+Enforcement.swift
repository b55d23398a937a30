package import CountersignCore
internal import CountersignSQLite
public import GatewayModel

extension AppDirectory {
    /// Sets an app's enforcement for all users, and cancels a scheduled switch.
    ///
    /// - Throws: `notFound`, `storage`.
    public func setEnforcement(_ enforcement: Enforcement, for appID: String) throws(GatewayError) {
        try GatewayError.storing {
            try transaction { directory in
                var plan = try directory.enforcementPlan(of: appID)
                plan.state = enforcement
                plan.rampPercent = 100
                plan.scheduled = nil
                try directory.setEnforcementPlan(plan, for: appID)
            }
        }
    }

    package func enforcementPlan(of appID: String) throws(GatewayError) -> EnforcementPlan {
        try setting(of: appID)
    }

    /// Sets a plan. Clears the record of an automatic return to `optional`. Throws `invalid` for a number out of range,
    /// and for a percentage below 100 in a state other than `required`.
    package func setEnforcementPlan(
        _ plan: EnforcementPlan, for appID: String, at milliseconds: Int64? = nil
    ) throws(GatewayError) {
        try plan.checkFields()
        var plan = plan
        plan.returned = nil
        let changed = plan
        try write { connection in
            try Self.checkApp(appID, connection)
            let now = try SettingTable(connection: connection).effective(EnforcementPlan.self, of: appID)
            if now.json == changed.json { return }
            try change(changed, of: appID, "enforcement.set", at: milliseconds ?? nowMilliseconds, connection)
        }
    }

    /// Makes scheduled switches of enforcement that are due. Returns the apps that were switched.
    package func switchScheduled(at milliseconds: Int64) throws(GatewayError) -> [String] {
        let due = try settings(EnforcementPlan.self).filter { $0.value.isDue(at: milliseconds) }
        if due.isEmpty { return [] }
        return try write { connection in
            try due.keys.sorted().filter { appID in
                // The plan may have changed since the read.
                guard var plan: EnforcementPlan = try SettingTable(connection: connection).one(of: appID),
                    let planned = plan.scheduled,
                    planned.atMilliseconds <= milliseconds
                else { return false }
                plan.state = planned.state
                plan.rampPercent = planned.rampPercent
                plan.scheduled = nil
                plan.returned = nil
                try change(plan, of: appID, "enforcement.scheduled", at: milliseconds, connection)
                return true
            }
        }
    }

    /// Sets enforcement to `optional` and queues an alert. Returns false when enforcement is no longer `required`.
    package func returnToOptional(
        _ appID: String, rejectedPercent: Double, alert: JSONValue, at milliseconds: Int64
    ) throws(GatewayError) -> Bool {
        try write { connection in
            guard var plan: EnforcementPlan = try SettingTable(connection: connection).one(of: appID),
                plan.state == .required
            else { return false }
            plan.state = .optional
            plan.rampPercent = 100
            plan.returned = .init(atMilliseconds: milliseconds, rejectedPercent: rejectedPercent)
            try change(plan, of: appID, "enforcement.returned", at: milliseconds, connection)
            try alerts.add(alert, of: appID, at: milliseconds, connection)
            return true
        }
    }

    private func change(
        _ plan: EnforcementPlan, of appID: String, _ action: String, at milliseconds: Int64,
        _ connection: any SQLConnection
    ) throws {
        let table = SettingTable(connection: connection)
        let before = try table.effective(EnforcementPlan.self, of: appID)
        var plan = plan
        plan.sinceMilliseconds = before.state == plan.state ? before.sinceMilliseconds : milliseconds
        try table.put(plan, of: appID)
        try audit(
            connection, action, plan.state.rawValue, app: appID, before: before.json, after: plan.json,
            at: milliseconds)
    }
}
