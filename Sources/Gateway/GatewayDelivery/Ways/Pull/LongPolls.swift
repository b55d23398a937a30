internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
package import GatewayModel

/// Requests that read events and wait for new ones.
///
/// Checking tokens and reading wait for the disk, so they run on a few separate threads. A waiting request uses no
/// thread. It is woken by new events of its app and by a timer.
package final class LongPolls: Sendable {
    /// The result of one read.
    enum ReadResult: Sendable {
        case answer(HTTPResponse)
        /// No events yet. The response to send at the deadline, and the maximum number of milliseconds until
        /// the next read.
        case nothing(HTTPResponse, againAfter: Int64?)
    }

    /// Calls back at a time in milliseconds, or immediately if it has passed.
    package typealias Schedule = @Sendable (Int64, @escaping @Sendable () -> Void) -> Void

    /// The maximum number of authenticated requests in total and for each app.
    static let most = 256
    static let mostOfApp = 64
    /// The minimum time from a read to a read that new events cause, in milliseconds. Otherwise each stored event would
    /// cause a read, also for a filter with few matches.
    static let pause: Int64 = 50
    private static let threads = 4
    private static let checkingThreads = 2

    private struct State {
        var isDraining = false
        /// The number of authenticated requests of each app.
        var ofApp: BytewiseDictionary<Int> = [:]
        var requests: [ObjectIdentifier: WaitingRequest] = [:]
    }

    private let arrivals: EventArrivals
    private let clock: @Sendable () -> Int64
    private let schedule: Schedule
    private let pace: ReadingPace
    private let queue = OperationQueue()
    private let checks = OperationQueue()
    /// Permits of requests whose token is not checked yet.
    private let unchecked = AddressPermits(most: 256)
    private let state = Lock(State())

    /// `clock` returns milliseconds of a monotonic clock.
    package init(
        arrivals: EventArrivals,
        clock: @escaping @Sendable () -> Int64 = { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) },
        schedule: Schedule? = nil, pace: ReadingPace? = nil
    ) {
        self.arrivals = arrivals
        self.pace = pace ?? ReadingPace(arrivals: arrivals)
        self.clock = clock
        self.schedule =
            schedule ?? { time, work in
                let delay = DispatchTimeInterval.milliseconds(Int(max(0, time - clock())))
                DispatchQueue.global().asyncAfter(deadline: .now() + delay, execute: work)
            }
        queue.name = "event readers"
        queue.maxConcurrentOperationCount = Self.threads
        checks.name = "event readers' tokens"
        checks.maxConcurrentOperationCount = Self.checkingThreads
    }

    /// Responds to all waiting requests. Later requests do not wait.
    package func drain() {
        let waiting = state.withLock { state in
            state.isDraining = true
            return Array(state.requests.values)
        }
        for request in waiting {
            if let response = request.held { finish(request, response) } else { wake(request, after: 0) }
        }
    }

    /// Responds with the result of `read` within `waitSeconds`, or with `busy` if too many requests wait. `check`
    /// returns the response to a request that is not authorized, and runs before each read. If `isGone` reports
    /// that the client has disconnected, nothing is read or leased.
    func outcome(
        of appID: String, from address: String, waitSeconds: Int, busy: HTTPResponse,
        isGone: @escaping @Sendable () -> Bool = { false },
        check: @escaping @Sendable () -> HTTPResponse?, read: @escaping @Sendable () -> ReadResult
    ) -> HTTPOutcome {
        guard unchecked.take(address) else { return .answer(busy) }
        let request = WaitingRequest(
            appID: appID, deadline: clock() + Milliseconds(seconds: waitSeconds).count, isGone: isGone,
            check: check, read: read)
        let client = WaitingRequest.Client { [weak self, weak request] in
            if let self, let request { finish(request, nil) }
        }
        return .later(
            start: { [self] resume in
                request.begin(resume)
                checks.addOperation { [self] in
                    let rejection = request.check()
                    // Not released when the client disconnects, so that the queue of checks is bounded.
                    unchecked.release(address)
                    if let response = rejection ?? (admit(request) ? nil : busy) {
                        return finish(request, response)
                    }
                    queue.addOperation { [self] in checkAndRead(request) }
                }
            },
            poll: {
                // Retains `client`. A disconnect releases this closure and so `client`, which ends the request.
                withExtendedLifetime(client) { request.response }
            })
    }

    /// Returns false if too many requests wait.
    private func admit(_ request: WaitingRequest) -> Bool {
        state.withLock { state in
            let ofApp = state.ofApp[request.appID, default: 0]
            guard state.requests.count < Self.most, ofApp < Self.mostOfApp else { return false }
            state.requests[ObjectIdentifier(request)] = request
            state.ofApp[request.appID] = ofApp + 1
            return true
        }
    }

    private func read(for request: WaitingRequest) {
        guard !request.isOver, !request.isGone() else { return finish(request, nil) }
        let ticket = arrivals.ticket
        let (found, pause) = pace.read(request.read)
        switch found {
        case .answer(let response):
            guard pause > 0 else { return finish(request, response) }
            request.hold(response)
            if state.withLock({ $0.isDraining }) { return finish(request, response) }
            schedule(clock() + Int64((pause * 1_000).rounded(.up))) { [weak self, weak request] in
                if let request, let response = request.held { self?.finish(request, response) }
            }
        case .nothing(let response, let againAfter):
            let time = clock()
            if time >= request.deadline || state.withLock({ $0.isDraining }) {
                return finish(request, response)
            }
            request.rest(at: time) { [self] in
                arrivals.wait(for: request.appID, since: ticket) { [weak self] in
                    self?.wake(request, after: Self.pause)
                }
            } cancel: { [arrivals] in
                arrivals.cancel($0)
            }
            let again = min(againAfter.map { time + $0 } ?? .max, request.deadline)
            if request.isNew(again, at: time) {
                // A timer does not retain the request, which may end long before.
                schedule(again) { [weak self, weak request] in
                    if let request { self?.wake(request, after: 0) }
                }
            }
            if state.withLock({ $0.isDraining }) { wake(request, after: 0) }
            if request.endsRest() { scheduleRead(request, at: time + Self.pause) }
        }
    }

    /// Schedules a read, at least `pause` milliseconds after the last one.
    private func wake(_ request: WaitingRequest, after pause: Int64) {
        if request.wakes() { scheduleRead(request, at: pause == 0 ? 0 : request.lastRead + pause) }
    }

    private func scheduleRead(_ request: WaitingRequest, at time: Int64) {
        guard time > clock() else {
            queue.addOperation { [self] in checkAndRead(request) }
            return
        }
        schedule(time) { [weak self] in
            guard let self else { return }
            queue.addOperation { [self] in checkAndRead(request) }
        }
    }

    private func checkAndRead(_ request: WaitingRequest) {
        if let rejection = request.check() { finish(request, rejection) } else { read(for: request) }
    }

    private func finish(_ request: WaitingRequest, _ response: HTTPResponse?) {
        state.withLock { state in
            guard state.requests.removeValue(forKey: ObjectIdentifier(request)) != nil else { return }
            state.ofApp[request.appID, default: 1] -= 1
            if state.ofApp[request.appID] == 0 { state.ofApp[request.appID] = nil }
        }
        if let waiter = request.end(with: response) { arrivals.cancel(waiter) }
    }
}

/// One request that reads events.
final class WaitingRequest: Sendable {
    /// Deallocated when the client disconnects or has the response. Then calls `gone`.
    final class Client: Sendable {
        private let gone: @Sendable () -> Void

        init(gone: @escaping @Sendable () -> Void) {
            self.gone = gone
        }

        deinit { gone() }
    }

    private enum Phase: Equatable {
        /// A read is running or scheduled. `again` is true if another read must follow.
        case reading(again: Bool)
        case resting
        case over
    }

    private struct State {
        var phase = Phase.reading(again: false)
        var resume: (@Sendable () -> Void)?
        var waiter: EventArrivals.Waiter?
        var response: HTTPResponse?
        var held: HTTPResponse?
        var lastRead: Int64 = 0
        var again: Int64?
    }

    let appID: String
    let deadline: Int64
    let isGone: @Sendable () -> Bool
    let check: @Sendable () -> HTTPResponse?
    let read: @Sendable () -> LongPolls.ReadResult
    private let state = Lock(State())

    init(
        appID: String, deadline: Int64, isGone: @escaping @Sendable () -> Bool,
        check: @escaping @Sendable () -> HTTPResponse?, read: @escaping @Sendable () -> LongPolls.ReadResult
    ) {
        self.appID = appID
        self.deadline = deadline
        self.isGone = isGone
        self.check = check
        self.read = read
    }

    var response: HTTPResponse? { state.withLock { $0.response } }
    /// A response with events that ``ReadingPace`` delays; nil without one.
    var held: HTTPResponse? { state.withLock { $0.held } }
    var lastRead: Int64 { state.withLock { $0.lastRead } }
    /// Whether the request was answered or its client has disconnected.
    var isOver: Bool { state.withLock { $0.phase == .over } }

    func begin(_ resume: @escaping @Sendable () -> Void) { state.withLock { $0.resume = resume } }

    func hold(_ response: HTTPResponse) { state.withLock { $0.held = response } }

    /// Waits with a new waiter, replacing the last one.
    func rest(at time: Int64, wait: () -> EventArrivals.Waiter?, cancel: (EventArrivals.Waiter) -> Void) {
        if let old = state.withLock({ $0.waiter }) { cancel(old) }
        let waiter = wait()
        let isOver = state.withLock { state in
            state.waiter = waiter
            state.lastRead = time
            return state.phase == .over
        }
        // The client has disconnected, so no later call cancels the waiter.
        if isOver, let waiter { cancel(waiter) }
    }

    /// Records a timer for the time `again`. Returns false if a timer is set for about this time.
    func isNew(_ again: Int64, at time: Int64) -> Bool {
        state.withLock { state in
            if let known = state.again, known > time, abs(known - again) < LongPolls.pause { return false }
            state.again = again
            return true
        }
    }

    /// Ends a read without events. Returns true if another read was requested meanwhile.
    func endsRest() -> Bool {
        state.withLock { state in
            guard case .reading(let again) = state.phase else { return false }
            state.phase = again ? .reading(again: false) : .resting
            return again
        }
    }

    /// Requests a read. Returns true if the caller must start it, because no read is running.
    func wakes() -> Bool {
        state.withLock { state in
            switch state.phase {
            case .over: return false
            case .reading:
                state.phase = .reading(again: true)
                return false
            case .resting:
                state.phase = .reading(again: false)
                return true
            }
        }
    }

    /// Responds once. Returns the waiter to cancel.
    func end(with response: HTTPResponse?) -> EventArrivals.Waiter? {
        let (resume, waiter) = state.withLock { state -> ((@Sendable () -> Void)?, EventArrivals.Waiter?) in
            if state.phase == .over { return (nil, nil) }
            state.phase = .over
            state.response = response
            state.held = nil
            return (state.resume, state.waiter)
        }
        resume?()
        return waiter
    }
}
