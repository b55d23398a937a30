internal import CountersignCore
package import Foundation
package import GatewayHTTP
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

/// Delivers to all endpoints. Each busy endpoint has its own thread, so a slow one does not delay others.
package final class WebhookRunner: Sendable {
    /// Delivers once and waits for the response. The closure returns true to cancel.
    package typealias Send =
        @Sendable (
            _ body: [UInt8], _ messageID: String, _ endpoint: WebhookEndpoint,
            _ isCancelled: @escaping @Sendable () -> Bool
        ) -> WebhookAttempt

    private struct State {
        var lanes: BytewiseDictionary<DeliveryLane> = [:]
        /// The version of the control database that `lanes` were read at.
        var version: Int64?
        /// Whether there may be new events for the lanes.
        var isWaking = false
        var isDraining = false
        var isCancelled = false
        var nextSweep: Int64 = 0
    }

    /// 413 Content Too Large (RFC 9110, section 15.5.14).
    private static let tooLarge = 413

    /// Seconds for which new events are collected before they are delivered.
    private static let gathering = 0.1

    private let directory: AppDirectory
    private let events: any WebhookEvents
    private let store: DeliveryStore
    private let send: Send
    private let log: GatewayLog
    private let hasDuty: @Sendable () -> Bool
    private let now: @Sendable () -> Date
    private let random: @Sendable () -> Double
    private let state = Lock(State())
    /// Serializes access to the control database.
    private let queue = DispatchQueue(label: "webhooks")
    private let ticker: Ticker
    private let busy = DispatchGroup()
    package let counts = WebhookCounts()

    /// Delivers nothing while `hasDuty` returns false because another gateway delivers.
    package init(
        directory: AppDirectory, events: any WebhookEvents, store: DeliveryStore, log: GatewayLog,
        now: @escaping @Sendable () -> Date,
        hasDuty: @escaping @Sendable () -> Bool = { true },
        random: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        send: @escaping Send
    ) {
        self.directory = directory
        self.events = events
        self.store = store
        self.log = log
        self.hasDuty = hasDuty
        self.now = now
        self.random = random
        self.send = send
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    package func start() {
        ticker.start { [weak self] in self?.lookNow() }
    }

    /// Starts no further deliveries.
    package func drain() {
        state.withLock { $0.isDraining = true }
        ticker.stop()
    }

    /// Waits for running deliveries. After `graceSeconds` they are cancelled and repeated after the next
    /// start.
    package func stop(graceSeconds: Double) {
        drain()
        queue.sync {}
        if busy.wait(timeout: .now() + graceSeconds) == .timedOut {
            state.withLock { $0.isCancelled = true }
            busy.wait()
        }
    }

    /// Checks once for changes and due deliveries.
    package func look() {
        queue.sync { lookNow() }
    }

    /// Signals that events were stored. Returns immediately. Events stored within a moment are delivered
    /// together.
    package func wake() {
        let isFirst = state.withLock { state in
            defer { state.isWaking = true }
            return !state.isWaking && !state.isDraining
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + Self.gathering) { [weak self] in
            guard let self else { return }
            wakeNow()
            for id in state.withLock({ Array($0.lanes.keys) }) { advance(id) }
        }
    }

    private func wakeNow() {
        state.withLock { state in
            guard state.isWaking else { return }
            state.isWaking = false
            for id in state.lanes.keys { state.lanes[id]?.machine.wake() }
        }
    }

    package var endpoints: [WebhookEndpoint] {
        state.withLock { $0.lanes.values.map(\.endpoint) }.sorted { $0.id < $1.id }
    }

    package func waitUntilIdle() {
        busy.wait()
    }

    private var milliseconds: Int64 { Milliseconds(now()).count }

    // MARK: On the queue

    private func lookNow() {
        guard hasDuty() else { return rest() }
        do {
            try reload()
            try sweep()
        } catch {
            log.note(.error, "webhooks not read", [("detail", "\(error)")])
        }
        wakeNow()
        for id in state.withLock({ Array($0.lanes.keys) }) { advance(id) }
    }

    /// Drops the state while another gateway delivers. It is read again later.
    private func rest() {
        state.withLock { state in
            state.lanes = [:]
            state.version = nil
            state.isWaking = false
        }
    }

    /// Loads changes by operators.
    private func reload() throws {
        let version = try directory.version()
        guard version != state.withLock({ $0.version }) else { return }
        let endpoints = try directory.webhooks.all()
        let requests = BytewiseDictionary(grouping: try directory.webhooks.requests(), by: \.endpointID)
        let known = state.withLock { BytewiseSet($0.lanes.keys) }
        var kept: BytewiseDictionary<DeliveryProgress> = [:]
        if endpoints.contains(where: { !known.contains($0.id) }) { kept = try store.progress() }
        var made: BytewiseDictionary<DeliveryLane> = [:]
        var isComplete = true
        for endpoint in endpoints where !known.contains(endpoint.id) {
            let committed: Int64
            do {
                committed = try events.committed(of: endpoint)
            } catch {
                log.note(.error, "webhook not begun", [("webhook", endpoint.id), ("detail", "\(error)")])
                isComplete = false
                continue
            }
            // The last attempt applies unless the position was moved since, for example by restoring a
            // backup.
            let progress =
                kept[endpoint.id].flatMap { $0.committed == committed ? $0 : nil }
                ?? DeliveryProgress(committed: committed)
            made[endpoint.id] = DeliveryLane(
                endpoint: endpoint,
                machine: DeliveryMachine(progress: progress, isPaused: endpoint.pause != nil))
        }
        let (lanes, readVersion) = (made, isComplete ? version : nil)
        state.withLock { state in
            let ids = BytewiseSet(endpoints.map(\.id))
            state.lanes = state.lanes.filter { ids.contains($0.key) }
            for endpoint in endpoints {
                var lane = state.lanes[endpoint.id] ?? lanes[endpoint.id]
                lane?.take(over: endpoint, requests[endpoint.id] ?? [])
                state.lanes[endpoint.id] = lane
            }
            state.version = readVersion
        }
    }

    private func sweep() throws {
        let milliseconds = milliseconds
        let hour: Int64 = 3_600_000
        // Endpoints without a lane yet are kept too, because they must not lose their position.
        let kept: [String]? = state.withLock { state in
            let isDue = DueTime.hasCome(state.nextSweep, at: milliseconds, within: hour)
            return isDue && state.version != nil ? Array(state.lanes.keys) : nil
        }
        guard let kept else { return }
        let apps = try directory.apps().map { DeliveryRecord.alerts(of: $0.id) }
        try store.sweep(keeping: BytewiseSet(apps + kept), at: milliseconds)
        state.withLock { $0.nextSweep = milliseconds + hour }
    }

    /// Starts a thread that works until nothing is due for the endpoint.
    private func advance(_ id: String) {
        guard let job = takeJob(id) else { return }
        busy.enter()
        let thread = Thread { [self] in
            var next: DeliveryLane.Job? = job
            while let job = next {
                perform(job)
                next = takeJob(id)
            }
            busy.leave()
        }
        thread.name = "webhook"
        thread.start()
    }

    private func takeJob(_ id: String) -> DeliveryLane.Job? {
        let now = milliseconds
        return state.withLock { state in
            state.isDraining
                ? nil : state.lanes[id]?.begin(atMilliseconds: now)
        }
    }

    // MARK: On an endpoint's thread

    private func perform(_ job: DeliveryLane.Job) {
        switch job {
        case .events(let endpoint, let work): deliver(work, to: endpoint)
        case .request(let endpoint, let request): deliver(request, to: endpoint)
        }
    }

    private func deliver(_ work: DeliveryMachine.Work, to endpoint: WebhookEndpoint) {
        do {
            let isAfterGap = state.withLock { $0.lanes[endpoint.id]?.machine.progress.isAfterGap ?? false }
            let reading = try events.read(
                for: endpoint, after: work.after, through: work.through, isReplay: false,
                isAfterGap: isAfterGap)
            if reading.hasMissed, !isAfterGap, work.attempt == 1 {
                log.note(
                    .error, "webhook missed events", [("app", endpoint.appID), ("webhook", endpoint.id)])
            }
            guard reading.batch.events > 0 else {
                if reading.reached > work.after {
                    try events.commit(reading.reached, isAfterGap: reading.hasMissed, of: endpoint)
                }
                return end(
                    .nothing(
                        through: reading.reached, hasMore: reading.hasMore, isAfterGap: reading.hasMissed),
                    endpoint, nil)
            }
            let digest = WebhookBatch.digest(of: reading.batch.body)
            let sent = state.withLock { state -> (id: String, progress: DeliveryProgress)? in
                guard var machine = state.lanes[endpoint.id]?.machine else { return nil }
                let id = machine.willSend(
                    through: reading.reached, digest: digest, newID: WebhookMessage.newID)
                state.lanes[endpoint.id]?.machine = machine
                return (id, machine.progress)
            }
            // The endpoint was deleted, or another gateway delivers to it now.
            guard let (messageID, progress) = sent else { return }
            try store.keep(progress, of: endpoint.id, after: nil)
            let began = milliseconds
            let attempt = send(reading.batch.body, messageID, endpoint) { [self] in isCancelled }
            if attempt.error == OutboundRequest.Failure.Code.cancelled.rawValue {
                return end(.notTried, endpoint, nil)
            }
            let record = DeliveryRecord(
                attempt, of: endpoint.id, messageID, .events, reading.batch, work.attempt, at: began)
            counts.add(endpoint.appID, isDelivered: attempt.error == nil)
            if attempt.error == nil {
                try events.commit(reading.reached, isAfterGap: false, of: endpoint)
                end(.delivered(through: reading.reached), endpoint, record)
            } else if attempt.status == Self.tooLarge, reading.batch.events > 1 {
                state.withLock { $0.lanes[endpoint.id]?.halve(from: reading.batch.events) }
                end(.tooLarge(retryAfterSeconds: attempt.retryAfterSeconds), endpoint, record)
            } else {
                end(
                    .failed(status: attempt.status, retryAfterSeconds: attempt.retryAfterSeconds), endpoint,
                    record)
            }
        } catch {
            log.note(
                .error, "webhook not delivered",
                [("app", endpoint.appID), ("webhook", endpoint.id), ("detail", "\(error)")])
            end(.notTried, endpoint, nil)
        }
    }

    private var isCancelled: Bool { state.withLock { $0.isCancelled } }

    private func end(
        _ outcome: DeliveryMachine.Outcome, _ endpoint: WebhookEndpoint, _ record: DeliveryRecord?
    ) {
        let now = milliseconds
        let (progress, reason) = state.withLock {
            state -> (DeliveryProgress?, WebhookEndpoint.Pause.Reason?) in
            guard var lane = state.lanes[endpoint.id] else { return (nil, nil) }
            let reason = lane.machine.ended(outcome, atMilliseconds: now, fraction: random())
            if case .delivered = outcome { lane.grow() }
            state.lanes[endpoint.id] = lane
            return (lane.machine.progress, reason)
        }
        do {
            // Nothing is stored for an endpoint that was deleted meanwhile.
            if progress != nil { try store.keep(progress, of: endpoint.id, after: record) }
            if let reason, let progress { try pause(endpoint, reason, progress, record, at: now) }
        } catch {
            log.note(
                .error, "webhook's progress not kept",
                [("app", endpoint.appID), ("webhook", endpoint.id), ("detail", "\(error)")])
        }
        // Only now, because the next delivery must be stored after this one.
        state.withLock { $0.lanes[endpoint.id]?.isBusy = false }
    }

    /// Pauses an endpoint that has failed for too long or is gone, and sends an alert.
    private func pause(
        _ endpoint: WebhookEndpoint, _ reason: WebhookEndpoint.Pause.Reason, _ progress: DeliveryProgress,
        _ record: DeliveryRecord?, at now: Int64
    ) throws {
        log.note(
            .warning, "webhook paused",
            [("app", endpoint.appID), ("webhook", endpoint.id), ("reason", reason.rawValue)])
        let pause = WebhookEndpoint.Pause(reason, by: Operator.schedule.name, atMilliseconds: now)
        try queue.sync {
            try directory.webhooks.setPause(
                pause, of: endpoint.id, of: endpoint.appID,
                alert: pause.alert(of: endpoint, progress, record), at: now)
            state.withLock { state in
                state.lanes[endpoint.id]?.endpoint.pause = pause
                state.lanes[endpoint.id]?.machine.pause()
            }
        }
    }

    private func deliver(_ begun: WebhookRequest, to endpoint: WebhookEndpoint) {
        var request = begun
        var next: WebhookRequest? = begun
        do {
            var reading: WebhookReading?
            if request.kind == .replay {
                reading = try events.read(
                    for: endpoint, after: request.after, through: request.through, isReplay: true,
                    isAfterGap: false)
            }
            let began = milliseconds
            if let reading, reading.batch.events == 0 {
                next?.after = reading.reached
                if !reading.hasMore { next = nil }
            } else {
                let body = reading?.batch.body ?? WebhookBatch.test
                request.willSend(digest: WebhookBatch.digest(of: body), newID: WebhookMessage.newID)
                next = request
                if request != begun {
                    try queue.sync { [request] in try directory.webhooks.keep(request) }
                }
                let attempt = send(body, request.messageID, endpoint) { [self] in isCancelled }
                if attempt.error == OutboundRequest.Failure.Code.cancelled.rawValue {
                    return settle(request, endpoint)
                }
                counts.add(endpoint.appID, isDelivered: attempt.error == nil)
                try store.keep(
                    nil, of: endpoint.id,
                    after: DeliveryRecord(
                        attempt, of: endpoint.id, request.messageID,
                        request.kind == .replay ? .replay : .test, reading?.batch, request.failures + 1,
                        at: began))
                let sentEvents = reading?.batch.events ?? 0
                let isTooLarge = attempt.status == Self.tooLarge && sentEvents > 1
                state.withLock { state in
                    if isTooLarge { state.lanes[endpoint.id]?.halve(from: sentEvents) }
                    if attempt.error == nil, sentEvents > 0 { state.lanes[endpoint.id]?.grow() }
                }
                next = request.after(
                    delivered: attempt.error == nil, through: reading?.reached ?? 0,
                    hasMore: reading?.hasMore ?? false, isTooLarge: isTooLarge,
                    retryAfterSeconds: attempt.retryAfterSeconds, atMilliseconds: milliseconds,
                    newID: WebhookMessage.newID, fraction: random())
            }
        } catch {
            log.note(
                .error, "webhook not delivered",
                [("app", endpoint.appID), ("webhook", endpoint.id), ("detail", "\(error)")])
            next?.nextMilliseconds = milliseconds + DeliveryMachine.leastPause
        }
        if next != request {
            let next = next
            queue.sync {
                do throws(GatewayError) {
                    if let next {
                        try directory.webhooks.keep(next)
                    } else {
                        try directory.webhooks.remove(request)
                    }
                } catch {
                    log.note(.error, "webhook's request not kept", [("detail", error.reason)])
                }
                settle(next ?? request, endpoint, isOver: next == nil)
            }
        } else {
            settle(request, endpoint)
        }
    }

    private func settle(_ request: WebhookRequest, _ endpoint: WebhookEndpoint, isOver: Bool = false) {
        state.withLock { $0.lanes[endpoint.id]?.settle(request, isOver: isOver) }
    }
}
