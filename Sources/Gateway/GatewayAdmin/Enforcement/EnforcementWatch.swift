internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// Makes scheduled switches, and sends alerts about apps that reject many requests. If an app has a rule, returns the
/// app to `optional` when previously accepted tokens of too many users fail.
///
/// Rejected requests only cause alerts, because anyone can send such requests. Only tokens that were valid
/// before can change the enforcement.
final class EnforcementWatch: Sendable {
    typealias Send = @Sendable (Alert, @escaping @Sendable (WebhookOutcome) -> Void) -> Void

    private let directory: AppDirectory
    /// The number of requests that required a token, and the number of these that were rejected.
    struct Recent: Sendable {
        var requests = 0
        var rejected = 0
    }

    /// The alert rule of apps that have no rule for the automatic return.
    private static let usual = EnforcementPlan.Return(
        rejectedPercent: 5, windowMinutes: 5, minimumRequests: 100)
    /// The minimum time between two alerts of an app, in milliseconds.
    private static let pause: Int64 = 3_600_000

    private let recent: @Sendable (_ appID: String, _ sinceMilliseconds: Int64) -> Recent
    private let known: @Sendable (_ appID: String, _ sinceMilliseconds: Int64) -> KnownTokens.Sum
    private let alerted = Lock<BytewiseDictionary<Int64>>([:])
    /// Ids of resolved alerts that could not be deleted yet. They are not sent again.
    private let unremoved = Lock<BytewiseSet>([])
    /// The plans of all apps, with the database version at which they were read.
    private let knownPlans = Lock<(version: Int64, plans: BytewiseDictionary<EnforcementPlan>)?>(nil)
    private let changed: @Sendable () -> Void
    private let gateways: @Sendable () -> Int
    private let sendsAlerts: @Sendable () -> Bool
    private let send: Send
    private let freeSlots: @Sendable () -> Int
    private let log: GatewayLog
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "enforcement")
    private let ticker: Ticker

    /// `directory` must have its own database connection; otherwise changes go unnoticed. `recent` counts the requests
    /// of all gateways, `known` only the users of this gateway. `sendsAlerts` is false while another gateway sends
    /// alerts. `freeSlots` is the number of alerts that `send` accepts now. Any gateway may make a scheduled switch,
    /// because each switch is decided in its own transaction.
    init(
        directory: AppDirectory, now: @escaping @Sendable () -> Date,
        recent: @escaping @Sendable (String, Int64) -> Recent,
        known: @escaping @Sendable (String, Int64) -> KnownTokens.Sum,
        changed: @escaping @Sendable () -> Void, gateways: @escaping @Sendable () -> Int = { 1 },
        sendsAlerts: @escaping @Sendable () -> Bool = { true },
        send: @escaping Send, freeSlots: @escaping @Sendable () -> Int, log: GatewayLog
    ) {
        self.directory = directory
        self.now = now
        self.recent = recent
        self.known = known
        self.changed = changed
        self.gateways = gateways
        self.sendsAlerts = sendsAlerts
        self.send = send
        self.freeSlots = freeSlots
        self.log = log
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    func start() {
        ticker.start { [weak self] in self?.check() }
    }

    func stop() {
        ticker.stop()
        queue.sync {}
    }

    func check() {
        let milliseconds = Milliseconds(now()).count
        do throws(GatewayError) {
            try applyPlans(at: milliseconds)
            for id in unremoved.withLock({ $0 }) { try remove(id) }
            for alert in try directory.alerts.takeDue(at: milliseconds, limit: freeSlots()) {
                send(alert) { [weak self] outcome in self?.end(alert, outcome) }
            }
        } catch {
            log.note(.error, "enforcement not checked", [("detail", error.reason)])
        }
    }

    private func applyPlans(at milliseconds: Int64) throws(GatewayError) {
        var isChanged = false
        // Also announces changes before an error, because no later check makes them again. Drops the plans,
        // because SQLite's data version changes only with commits of other connections.
        defer {
            if isChanged {
                knownPlans.withLock { $0 = nil }
                changed()
            }
        }
        if try plans().values.contains(where: { $0.isDue(at: milliseconds) }) {
            isChanged = try !directory.switchScheduled(at: milliseconds).isEmpty
            knownPlans.withLock { $0 = nil }
        }
        let plans = try plans()
        // A new app with the id of a deleted app gets an alert without delay.
        alerted.withLock { alerted in alerted = alerted.filter { plans[$0.key] != nil } }
        for (appID, plan) in plans where plan.state == .required {
            if try returns(appID, plan, at: milliseconds) {
                isChanged = true
            } else if sendsAlerts() {
                try alertRejections(appID, plan, at: milliseconds)
            }
        }
    }

    private func plans() throws(GatewayError) -> BytewiseDictionary<EnforcementPlan> {
        let version = try directory.version()
        if let known = knownPlans.withLock({ $0 }), known.version == version { return known.plans }
        let plans = try directory.settings(EnforcementPlan.self)
        knownPlans.withLock { $0 = (version, plans) }
        return plans
    }

    private func returns(
        _ appID: String, _ plan: EnforcementPlan, at milliseconds: Int64
    ) throws(GatewayError) -> Bool {
        guard let rule = plan.autoReturn else { return false }
        let sum = known(appID, Self.start(of: rule, plan, milliseconds))
        guard sum.lost > 0, sum.users >= max(1, rule.minimumRequests / max(1, gateways())),
            Self.percent(sum.lost, of: sum.users) >= Double(rule.rejectedPercent)
        else { return false }
        let percent = Self.percent(sum.lost, of: sum.users)
        let alert = Self.alert(
            "enforcement.returned", appID, "optional", rule, percent,
            ["users": .integer(Int64(sum.users)), "rejected_users": .integer(Int64(sum.lost))], milliseconds)
        guard
            try directory.returnToOptional(
                appID, rejectedPercent: (percent * 10).rounded() / 10, alert: alert, at: milliseconds)
        else { return false }
        log.note(.warning, "enforcement returned to optional", [("app", appID)])
        return true
    }

    private func alertRejections(
        _ appID: String, _ plan: EnforcementPlan, at milliseconds: Int64
    ) throws(GatewayError) {
        let rule = plan.autoReturn ?? Self.usual
        if let last = alerted.withLock({ $0[appID] }), abs(milliseconds - last) < Self.pause { return }
        let recent = recent(appID, Self.start(of: rule, plan, milliseconds))
        let percent = Self.percent(recent.rejected, of: recent.requests)
        guard recent.requests >= rule.minimumRequests, percent >= Double(rule.rejectedPercent) else { return }
        let alert = Self.alert(
            "enforcement.rejecting", appID, "required", rule, percent,
            ["requests": .integer(Int64(recent.requests)), "rejected": .integer(Int64(recent.rejected))],
            milliseconds)
        try directory.alerts.queue(alert, of: appID, at: milliseconds)
        alerted.withLock { $0[appID] = milliseconds }
        log.note(.warning, "many requests are rejected", [("app", appID)])
    }

    /// The start of the window. Requests before the switch to `required` do not count.
    private static func start(
        of rule: EnforcementPlan.Return, _ plan: EnforcementPlan, _ milliseconds: Int64
    ) -> Int64 {
        let window = milliseconds - Int64(rule.windowMinutes) * 60_000
        // A switch in the future was made while the clock was ahead.
        let isMade = plan.sinceMilliseconds <= DueTime.last(at: milliseconds, within: 0)
        return isMade ? max(window, plan.sinceMilliseconds) : window
    }

    private static func percent(_ part: Int, of all: Int) -> Double {
        all == 0 ? 0 : Double(part) * 100 / Double(all)
    }

    private static func alert(
        _ type: String, _ appID: String, _ state: String, _ rule: EnforcementPlan.Return, _ percent: Double,
        _ counts: JSONObject, _ milliseconds: Int64
    ) -> JSONValue {
        let data: JSONObject = [
            "app": .string(appID), "state": .string(state), "rejected_percent": .number(percent),
            "window_minutes": .integer(Int64(rule.windowMinutes)),
        ]
        return [
            "type": .string(type), "timestamp": .string(RFC3339.text(milliseconds: milliseconds)),
            "data": .object(data.merging(counts) { one, _ in one }),
        ]
    }

    private func end(_ alert: Alert, _ outcome: WebhookOutcome) {
        var isOver = true
        if case .rejected(let reason) = outcome {
            isOver = alert.isLastAttempt
            log.note(
                .error, isOver ? "alert dropped after the last attempt" : "alert not delivered",
                [("app", alert.appID), ("attempt", String(alert.attempt)), ("detail", reason)])
        }
        if case .overloaded = outcome { isOver = false }
        guard isOver else { return }
        unremoved.withLock { _ = $0.insert(alert.id) }
        do throws(GatewayError) {
            try remove(alert.id)
        } catch {
            log.note(.error, "alert not removed", [("app", alert.appID), ("detail", error.reason)])
        }
    }

    /// Deletes a resolved alert. If that fails, a later check deletes it before due alerts are sent.
    private func remove(_ id: String) throws(GatewayError) {
        try directory.alerts.remove(id)
        unremoved.withLock { _ = $0.remove(id) }
    }
}
