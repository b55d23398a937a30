internal import CountersignCore
internal import Foundation

/// Makes scheduled switches, and takes an app back to `optional` when too many requests are refused.
final class EnforcementWatch: Sendable {
    private let directory: AppDirectory
    private let recent:
        @Sendable (_ appID: String, _ sinceMilliseconds: Int64) -> (requests: Int, rejected: Int)
    private let changed: @Sendable () -> Void
    private let alert: @Sendable (_ appID: String, _ alert: JSONValue) -> Void
    private let problem: @Sendable (String) -> Void
    private let now: @Sendable () -> Date
    private let queue = DispatchQueue(label: "enforcement")
    private let timer = Lock<(any DispatchSourceTimer)?>(nil)

    /// - Parameters:
    ///   - directory: Where the plans are.
    ///   - now: The clock that switches are made by.
    ///   - recent: Requests of identified users since a time, and how many of them were refused.
    ///   - changed: Called when a plan was changed.
    ///   - alert: Called with what to tell the app's webhook.
    ///   - problem: Hears why a look failed; the next one is a second later.
    init(
        directory: AppDirectory, now: @escaping @Sendable () -> Date,
        recent: @escaping @Sendable (String, Int64) -> (requests: Int, rejected: Int),
        changed: @escaping @Sendable () -> Void,
        alert: @escaping @Sendable (String, JSONValue) -> Void,
        problem: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.directory = directory
        self.now = now
        self.recent = recent
        self.changed = changed
        self.alert = alert
        self.problem = problem
    }

    func start() {
        let source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + 1, repeating: 1)
        source.setEventHandler { @Sendable [weak self] in self?.look() }
        source.resume()
        timer.withLock { $0 = source }
    }

    func stop() {
        timer.withLock { timer in
            timer?.cancel()
            timer = nil
        }
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
                guard
                    try directory.returnToOptional(
                        appID, rejectedPercent: (percent * 10).rounded() / 10, at: milliseconds)
                else { continue }
                isChanged = true
                alert(
                    appID,
                    [
                        "type": "enforcement.returned",
                        "timestamp": .string(RFC3339.text(milliseconds: milliseconds)),
                        "data": [
                            "app": .string(appID), "state": "optional", "requests": .integer(Int64(requests)),
                            "rejected": .integer(Int64(rejected)), "rejected_percent": .number(percent),
                            "window_minutes": .integer(Int64(rule.windowMinutes)),
                        ],
                    ])
            }
            if isChanged { changed() }
        } catch {
            problem(error.reason)
        }
    }
}
