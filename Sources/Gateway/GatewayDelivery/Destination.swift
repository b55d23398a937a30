internal import CountersignCore
internal import GatewayModel

/// The state of one ``Way``, such as a webhook: delivery of new events, and requested replays and tests.
struct Destination: Sendable {
    enum Job: Sendable {
        case events(Follower.Work)
        case request(DeliveryRequest)
    }

    private(set) var route: DeliveryRoute
    let kind: any WayKind
    let way: any Way
    var events: Follower
    /// Whether a job is running. A way has at most one.
    var isBusy = false
    /// Whether the position has moved since it was stored.
    var isUnstored = false
    /// The number of events that the receiver has accepted since this gateway began to deliver to it.
    var accepted = 0
    /// Whether an alert about the current lag was sent.
    var isLate = false
    var waiter: EventArrivals.Waiter?
    private var requests: [DeliveryRequest]
    /// Whether a due request runs before new events. Requests and events alternate.
    private var isRequestsTurn = true

    init(_ route: DeliveryRoute, of kind: any WayKind, _ progress: DeliveryProgress) {
        self.route = route
        self.kind = kind
        way = kind.open(route.id)
        events = Follower(route, progress, retry: kind.retry, probeMilliseconds: kind.probeMilliseconds)
        requests = route.requests
    }

    /// Applies reloaded settings. A running delivery is not affected.
    mutating func apply(_ route: DeliveryRoute) {
        self.route = route
        events.apply(route)
        requests = route.requests
    }

    /// Marks the way as busy and returns the job to run; nil if a job is running or no job is due.
    mutating func begin(atMilliseconds now: Int64) -> Job? {
        if isBusy { return nil }
        let request = requests.first {
            DueTime.hasCome($0.nextMilliseconds, at: now, within: Retry.longest)
        }
        if let request, isRequestsTurn { return begin(request) }
        if let work = events.next(atMilliseconds: now) {
            isBusy = true
            isRequestsTurn = true
            return .events(work)
        }
        return request.map { begin($0) }
    }

    private mutating func begin(_ request: DeliveryRequest) -> Job {
        isBusy = true
        isRequestsTurn = false
        return .request(request)
    }

    /// Records the state of a request after an attempt, or removes it if it is complete.
    mutating func record(_ request: DeliveryRequest, isOver: Bool) {
        isBusy = false
        requests.removeAll { $0.id == request.id }
        guard !isOver else { return }
        requests.append(request)
        requests.sort { $0.id < $1.id }
    }
}

extension DeliveryRequest {
    /// Attempts after which a replay is given up; a test is tried once.
    package static let mostAttempts = 10

    /// Records that a body with this digest is about to be sent. If the digest differs from the last attempt's, the
    /// message gets a new id.
    mutating func willSend(digest: String, newID: () -> String) {
        if let before = self.digest, before != digest { messageID = newID() }
        self.digest = digest
    }

    /// The request's state after an attempt; nil if the request is complete or has no attempts left.
    func after(
        _ answer: DeliveryAnswer, events: Int, through: Int64, hasMore: Bool, retry: Retry,
        atMilliseconds now: Int64, newID: () -> String, fraction: Double
    ) -> DeliveryRequest? {
        var next = self
        var seconds: Int?
        switch answer {
        case .notTried:
            next.nextMilliseconds = now + Retry.least
            return next
        case .split(let after) where events > 1:
            next.nextMilliseconds = now + Retry.retryAfter(after)
            return next
        case .delivered(let accepted, _):
            guard kind == .replay, hasMore || accepted < through else { return nil }
            next.messageID = newID()
            next.digest = nil
            next.after = accepted
            next.failures = 0
            next.nextMilliseconds = now
            return next
        case .split(let after): seconds = after
        case .retry(_, let after): seconds = after
        case .pause, .moved, .wait: break
        }
        next.failures += 1
        guard kind == .replay, next.failures < Self.mostAttempts else { return nil }
        next.nextMilliseconds =
            now + retry.pause(failures: next.failures, afterSeconds: seconds, fraction: fraction)
        return next
    }
}
