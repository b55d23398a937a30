internal import CountersignCore
internal import Foundation

/// Makes scheduled switches, and takes an app back to `optional` when too many requests are refused.
final class EnforcementWatch: Sendable {
    /// Delivers an alert, and says how that ended.
    typealias Send = @Sendable (Alert, @escaping @Sendable (WebhookSender.Outcome) -> Void) -> Void

    private let directory: AppDirectory
    private let recent:
        @Sendable (_ appID: String, _ sinceMilliseconds: Int64) -> (requests: Int, rejected: Int)
    private let changed: @Sendable () -> Void
    private let send: Send
    private let log: GatewayLog
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "enforcement")
    private let ticker: Ticker

    /// - Parameters:
    ///   - directory: Where the plans are.
    ///   - now: The clock that switches are made by.
    ///   - recent: Requests of identified users since a time, and how many of them were refused.
    ///   - changed: Called when a plan was changed.
    ///   - send: Delivers an alert to its webhook.
    ///   - log: Hears of what was done, and of what failed: the next look is a second later.
    init(
        directory: AppDirectory, now: @escaping @Sendable () -> Date,
        recent: @escaping @Sendable (String, Int64) -> (requests: Int, rejected: Int),
        changed: @escaping @Sendable () -> Void,
        send: @escaping Send,
        log: GatewayLog
    ) {
        self.directory = directory
        self.now = now
        self.recent = recent
        self.changed = changed
        self.send = send
        self.log = log
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    func start() {
        ticker.start { [weak self] in self?.look() }
    }

    func stop() {
        ticker.stop()
        queue.sync {}
    }

    /// Looks at every plan once.
    func look() {
        let milliseconds = Int64(now().timeIntervalSince1970 * 1000)
        do throws(GatewayError) {
            var isChanged = try !directory.switchScheduled(at: milliseconds).isEmpty
            for (appID, plan) in try directory.enforcementPlans() {
                guard plan.state == .required, let rule = plan.autoReturn else { continue }
                let window = milliseconds - Int64(rule.windowMinutes) * 60_000
                let (requests, rejected) = recent(appID, max(window, plan.sinceMilliseconds))
                let percent = requests == 0 ? 0 : Double(rejected) * 100 / Double(requests)
                guard requests >= rule.minimumRequests, percent >= Double(rule.rejectedPercent) else {
                    continue
                }
                let alert: JSONValue = [
                    "type": "enforcement.returned",
                    "timestamp": .string(RFC3339.text(milliseconds: milliseconds)),
                    "data": [
                        "app": .string(appID), "state": "optional", "requests": .integer(Int64(requests)),
                        "rejected": .integer(Int64(rejected)), "rejected_percent": .number(percent),
                        "window_minutes": .integer(Int64(rule.windowMinutes)),
                    ],
                ]
                guard
                    try directory.returnToOptional(
                        appID, rejectedPercent: (percent * 10).rounded() / 10, alert: alert, at: milliseconds)
                else { continue }
                isChanged = true
                log.note(.warning, "enforcement returned to optional", [("app", appID)])
            }
            if isChanged { changed() }
            for alert in try directory.takeDueAlerts(at: milliseconds) {
                send(alert) { [weak self] outcome in self?.end(alert, outcome) }
            }
        } catch {
            log.note(.error, "enforcement not looked at", [("detail", error.reason)])
        }
    }

    private func end(_ alert: Alert, _ outcome: WebhookSender.Outcome) {
        var isOver = true
        if case .refused(let reason) = outcome {
            isOver = alert.isLastAttempt
            log.note(
                .error, isOver ? "alert given up" : "alert not delivered",
                [("app", alert.appID), ("attempt", String(alert.attempt)), ("detail", reason)])
        }
        if case .overloaded = outcome { isOver = false }
        if isOver { try? directory.removeAlert(alert.id) }
    }
}
