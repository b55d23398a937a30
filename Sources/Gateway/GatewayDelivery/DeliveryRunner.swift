internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

/// Runs the followers of all ways on a thread pool of fixed size. A way that waits for its receiver uses no
/// thread of the pool, so it does not delay other ways.
package final class DeliveryRunner: Sendable {
    /// Runs work on a thread of the pool, as soon as one is free.
    package typealias Pool = @Sendable (@escaping @Sendable () -> Void) -> Void

    /// The storage, clock, thread pool and log of a runner.
    package struct Environment: Sendable {
        package var directory: AppDirectory
        package var events: any EventLog
        package var consumers: any EventConsumers
        package var arrivals: EventArrivals
        package var log: GatewayLog
        package var pool: Pool
        package var now: @Sendable () -> Date
        /// A random number from 0 to 1.
        package var fraction: @Sendable () -> Double

        package init(
            directory: AppDirectory, events: any EventLog, consumers: any EventConsumers,
            arrivals: EventArrivals, log: GatewayLog, pool: @escaping Pool,
            now: @escaping @Sendable () -> Date,
            fraction: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
        ) {
            self.directory = directory
            self.events = events
            self.consumers = consumers
            self.arrivals = arrivals
            self.log = log
            self.pool = pool
            self.now = now
            self.fraction = fraction
        }
    }

    /// The state of a way, for metrics.
    package struct Count: Sendable {
        package let id: EventConsumerID
        /// Events accepted since the gateway started.
        package let events: Int
        package let isFailing: Bool
    }

    private struct State {
        var destinations: [EventConsumerID: Destination] = [:]
        /// The version of the control database when the routes of each kind were last read.
        var versions: [EventConsumerID.Kind: Int64] = [:]
        var isDraining = false
        var nextSweep: Int64 = 0
        var nextLagCheck: Int64 = 0
        /// Ways whose present lag has caused an alert.
        var late: Set<EventConsumerID> = []
    }

    private static let hour: Int64 = 3_600_000
    private static let lagPause: Int64 = 10_000

    private let kinds: [any WayKind]
    private let environment: Environment
    private let state = Lock(State())
    /// Serializes access to the control database.
    private let queue = DispatchQueue(label: "delivery")
    private let ticker: Ticker
    private let busy = DispatchGroup()

    package init(_ kinds: [any WayKind], _ environment: Environment) {
        self.kinds = kinds
        self.environment = environment
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    package func start() {
        queue.async { [weak self] in self?.lookNow() }
        ticker.start { [weak self] in self?.lookNow() }
    }

    /// Starts no further deliveries.
    package func drain() {
        state.withLock { $0.isDraining = true }
        ticker.stop()
    }

    /// Waits for running deliveries. After `graceSeconds` they are cancelled, and repeated after the next start.
    package func stop(graceSeconds: Double) {
        drain()
        queue.sync {}
        if busy.wait(timeout: .now() + graceSeconds) == .timedOut {
            for way in ways { way.close() }
            _ = busy.wait(timeout: .now() + 3)
        }
        queue.sync { flush() }
        for way in ways { way.close() }
    }

    private var ways: [any Way] { state.withLock { $0.destinations.values.map(\.way) } }

    /// Checks once for changes, due deliveries and lag.
    package func look() { queue.sync { lookNow() } }

    /// Signals that events may have been stored.
    package func wake() {
        state.withLock { state in
            for id in state.destinations.keys { state.destinations[id]?.events.wake() }
        }
        for id in ids { advance(id) }
    }

    package func waitUntilIdle() { busy.wait() }

    package var ids: [EventConsumerID] {
        state.withLock { Array($0.destinations.keys) }.sorted()
    }

    package var counts: [Count] {
        state.withLock { Array($0.destinations) }.map { id, destination in
            Count(
                id: id, events: destination.accepted,
                isFailing: !destination.events.isPaused && destination.events.progress.failures > 0)
        }
        .sorted { $0.id < $1.id }
    }

    private var milliseconds: Int64 { Milliseconds(environment.now()).count }

    private func kind(_ id: EventConsumerID) -> any WayKind {
        guard let kind = kinds.first(where: { $0.kind == id.kind }) else {
            preconditionFailure("a way has no kind")
        }
        return kind
    }

    private func note(_ message: StaticString, _ id: EventConsumerID, _ error: any Error) {
        environment.log.note(.error, message, Self.labels(id) + [("detail", "\(error)")])
    }

    private static func labels(_ id: EventConsumerID) -> [(StaticString, String)] {
        [("app", id.appID), ("way", id.kind.rawValue), ("name", id.name)]
    }

    // MARK: On the queue

    private func lookNow() {
        for kind in kinds {
            guard kind.hasDuty else {
                rest(kind.kind)
                continue
            }
            do {
                try reload(kind)
            } catch {
                environment.log.note(
                    .error, "ways not read", [("way", kind.kind.rawValue), ("detail", "\(error)")])
            }
        }
        flush()
        do {
            try sweep()
            try checkLag()
        } catch {
            environment.log.note(.error, "ways not checked", [("detail", "\(error)")])
        }
        for id in ids { advance(id) }
    }

    /// Closes all webhooks, streams or files while another gateway delivers. `reload` opens them again.
    private func rest(_ kind: EventConsumerID.Kind) {
        let ways = state.withLock { state in
            let dropped = state.destinations.filter { $0.key.kind == kind }
            for id in dropped.keys { state.destinations[id] = nil }
            state.versions[kind] = nil
            return dropped.values.map(\.way)
        }
        for way in ways { way.close() }
    }

    /// Loads changes by operators.
    private func reload(_ kind: any WayKind) throws {
        let version = try environment.directory.version()
        let known = state.withLock { $0.versions[kind.kind] }
        guard version != known else { return }
        let routes = try kind.routes()
        let kept = try progress(of: routes, kind, isFirst: known == nil)
        let removed = state.withLock { state in
            let removed = state.destinations.filter { id, _ in
                id.kind == kind.kind && !routes.contains { $0.id == id }
            }
            for id in removed.keys { state.destinations[id] = nil }
            return removed.values.map(\.way)
        }
        for way in removed { way.close() }
        for route in routes {
            let open = state.withLock { state -> (any Way)? in
                state.destinations[route.id]?.take(over: route)
                return state.destinations[route.id]?.way
            }
            if let open {
                kind.change(open, to: route)
                continue
            }
            let way = try kind.open(route)
            let follower = Follower(
                route, kept[route.id] ?? DeliveryProgress(committed: route.start), retry: kind.retry,
                probeMilliseconds: kind.probeMilliseconds)
            state.withLock { $0.destinations[route.id] = Destination(route, way, follower) }
        }
        state.withLock { $0.versions[kind.kind] = version }
    }

    /// The stored progress of all routes. Creates missing rows, and deletes the rows of deleted routes.
    private func progress(
        of routes: [DeliveryRoute], _ kind: any WayKind, isFirst: Bool
    ) throws -> [EventConsumerID: DeliveryProgress] {
        let consumers = environment.consumers
        var kept = try consumers.progress(kind.kind)
        for id in kept.keys where !routes.contains(where: { $0.id == id }) {
            try consumers.delete(id)
        }
        // During a rolling upgrade, a gateway of an earlier version may have delivered before this gateway and may
        // deliver again. So the progress that it has stored is read, but not deleted.
        let earlier = isFirst ? try kind.earlierProgress() : [:]
        for route in routes {
            var progress = kept[route.id]
            if let before = earlier[route.id], before.epoch == route.epoch,
                progress.map({ $0.epoch == before.epoch && $0.committed < before.committed }) ?? true
            {
                progress = before
            }
            if progress == nil {
                progress = DeliveryProgress(committed: route.start)
                progress?.epoch = route.epoch
            }
            let known = state.withLock { $0.destinations[route.id]?.route }
            // A running delivery may have stored newer progress than the progress read above.
            let isNew = kept[route.id] != progress
            if isNew || known.map({ $0.holdDays != route.holdDays }) ?? true {
                try consumers.follow(route.id, holdDays: route.holdDays, from: isNew ? progress : nil)
            }
            kept[route.id] = progress
        }
        return kept
    }

    /// Stores progress that is only in memory: after skipped events, or after a failure to store it.
    private func flush() {
        let moved = state.withLock { state in
            var moved: [EventConsumerID: DeliveryProgress] = [:]
            for (id, destination) in state.destinations where destination.isUnstored && !destination.isBusy {
                moved[id] = destination.events.progress
                state.destinations[id]?.isUnstored = false
                // Prevents a delivery, because this write could overwrite its newer progress.
                state.destinations[id]?.isBusy = true
            }
            return moved
        }
        guard !moved.isEmpty else { return }
        defer { state.withLock { for id in moved.keys { $0.destinations[id]?.isBusy = false } } }
        do {
            try environment.consumers.keep(moved)
        } catch {
            environment.log.note(.error, "positions not stored", [("detail", "\(error)")])
            state.withLock { state in
                for id in moved.keys { state.destinations[id]?.isUnstored = true }
            }
        }
    }

    private func sweep() throws {
        let milliseconds = milliseconds
        let isDue = state.withLock { DueTime.hasCome($0.nextSweep, at: milliseconds, within: Self.hour) }
        guard isDue else { return }
        for kind in kinds where state.withLock({ $0.versions[kind.kind] != nil }) {
            let names = ids.filter { $0.kind == kind.kind }.map(\.name)
            try kind.sweep(keeping: names, atMilliseconds: milliseconds)
        }
        state.withLock { $0.nextSweep = milliseconds + Self.hour }
    }

    /// Sends one alert when a way's lag exceeds its limit.
    private func checkLag() throws {
        let milliseconds = milliseconds
        let limits = state.withLock { state -> [EventConsumerID: Int64] in
            guard DueTime.hasCome(state.nextLagCheck, at: milliseconds, within: Self.lagPause) else {
                return [:]
            }
            state.nextLagCheck = milliseconds + Self.lagPause
            return state.destinations.compactMapValues { destination in
                destination.route.alertSeconds.map { Milliseconds(seconds: $0).count }
            }
        }
        for kind in Set(limits.keys.map(\.kind)) {
            for consumer in try environment.consumers.all(kind, of: nil) {
                guard let limit = limits[consumer.id] else { continue }
                let isLate = consumer.oldestUnreadMilliseconds.map { milliseconds - $0 > limit } ?? false
                guard isLate else {
                    state.withLock { _ = $0.late.remove(consumer.id) }
                    continue
                }
                guard !state.withLock({ $0.late.contains(consumer.id) }) else { continue }
                environment.log.note(
                    .error, "delivery is late",
                    Self.labels(consumer.id) + [("lag_events", String(consumer.lag))])
                let progress = state.withLock { $0.destinations[consumer.id]?.events.progress }
                try self.kind(consumer.id).tellLate(consumer, progress, atMilliseconds: milliseconds)
                // Only after the alert is stored, so that a failure is retried.
                state.withLock { _ = $0.late.insert(consumer.id) }
            }
        }
    }

    // MARK: On the pool

    /// Starts the next job of a way, if one is due.
    private func advance(_ id: EventConsumerID) {
        let now = milliseconds
        // Taken before the log is read, so that events stored in between wake the way.
        let ticket = environment.arrivals.ticket
        let (job, route, way) = state.withLock {
            state -> (Destination.Job?, DeliveryRoute?, (any Way)?) in
            guard !state.isDraining else { return (nil, nil, nil) }
            let job = state.destinations[id]?.begin(atMilliseconds: now)
            return (job, state.destinations[id]?.route, state.destinations[id]?.way)
        }
        guard let job, let route, let way else { return }
        busy.enter()
        environment.pool { [self] in
            switch job {
            case .events(let work): deliver(work, route, way, ticket)
            case .request(let request): deliver(request, route, way)
            }
        }
    }

    private func read(
        _ route: DeliveryRoute, after sequence: Int64, through: Int64?, limit: Int
    ) throws -> (page: EventRange, positions: EventPositions) {
        var page = try environment.events.follow(
            EventQuery(appID: route.id.appID, filter: route.filter), after: sequence, limit: limit)
        // Read again, because the log may have grown.
        let positions = try environment.events.positions()
        if let through {
            page.events.removeAll { $0.sequence > through }
            page.hasMore = page.hasMore && page.reached < through
            page.reached = min(page.reached, through)
        }
        // Event files begin at 0 even if events were deleted earlier, so there is no gap. Other ways begin at 0 only if
        // no event was deleted before, so their gap is real.
        if route.id.kind == .file { page.gap = page.gap.forReader(after: sequence) }
        return (page, positions)
    }

    private func deliver(
        _ work: Follower.Work, _ route: DeliveryRoute, _ way: any Way, _ ticket: EventArrivals.Ticket
    ) {
        let id = route.id
        let progress = state.withLock { $0.destinations[id]?.events.progress }
        // An operator may have moved the position since the work began.
        guard let progress, progress.committed == work.after else {
            return end(id, way, .answer(.notTried, events: 0))
        }
        var batch = DeliveryBatch(appID: id.appID, progress: progress) { [self] digest, through in
            try identify(id, way, digest, through)
        }
        batch.attempt = work.attempt
        batch.limit = work.limit
        // The position after which the first gap begins.
        let gapStart = Lock<Int64?>(nil)
        do {
            if work.isProbe {
                batch.kind = .probe
                batch.positions = try environment.events.positions()
            } else {
                let (page, positions) = try read(
                    route, after: work.after, through: work.through, limit: work.limit)
                batch.events = page.events
                batch.reached = page.reached
                batch.hasMore = page.hasMore
                batch.positions = positions
                batch.follow = { [self] sequence in
                    let page = try read(route, after: sequence, through: nil, limit: work.limit).page
                    if page.gap.isOpen { gapStart.withLock { $0 = $0 ?? sequence } }
                    return page
                }
                batch.gap = page.gap.joined(with: progress.gap)
                if batch.gap.isOpen { gapStart.withLock { $0 = work.after } }
                guard !page.events.isEmpty else {
                    if !page.hasMore { sleep(id, ticket) }
                    return end(
                        id, way,
                        .nothing(
                            through: page.reached, hasMore: page.hasMore, gap: batch.gap))
                }
            }
        } catch {
            note("events not delivered", id, error)
            return end(id, way, .answer(.notTried, events: 0))
        }
        let count = batch.events.count
        way.accept(batch) { [self] answer in
            if case .delivered(let through, _) = answer, let start = gapStart.withLock({ $0 }),
                through > start
            {
                environment.log.note(.error, "delivery missed events", Self.labels(id))
            }
            environment.pool { self.end(id, way, .answer(answer, events: count)) }
        }
    }

    /// Waits for events of the app stored since the ticket.
    private func sleep(_ id: EventConsumerID, _ ticket: EventArrivals.Ticket) {
        let old = state.withLock { $0.destinations[id]?.waiter }
        if let old { environment.arrivals.cancel(old) }
        let delay = kind(id).gatherSeconds
        let waiter = environment.arrivals.wait(for: id.appID, since: ticket) { [weak self] in
            self?.queue.asyncAfter(deadline: .now() + delay) { [weak self] in
                guard let self else { return }
                state.withLock { $0.destinations[id]?.events.wake() }
                advance(id)
            }
        }
        state.withLock { $0.destinations[id]?.waiter = waiter }
    }

    /// Stores the digest and the last event of the message to send, and returns the message's id.
    private func identify(
        _ id: EventConsumerID, _ way: any Way, _ digest: String, _ through: Int64
    ) throws -> String {
        let sent = state.withLock { state -> (String, DeliveryProgress)? in
            guard let destination = state.destinations[id], destination.way === way else { return nil }
            var follower = destination.events
            let message = follower.willSend(
                through: through, digest: digest, newID: DeliveryRequest.newMessageID)
            state.destinations[id]?.events = follower
            return (message, follower.progress)
        }
        guard let (message, progress) = sent else { throw Gone() }
        try environment.consumers.keep([id: progress])
        return message
    }

    /// The way was deleted, or another gateway delivers to it now.
    private struct Gone: Error {}

    private func end(_ id: EventConsumerID, _ way: any Way, _ outcome: Follower.Outcome) {
        let now = milliseconds
        let (progress, reason, isStored) = state.withLock {
            state -> (DeliveryProgress?, WayPause.Reason?, Bool) in
            // The way may have been closed and opened again meanwhile.
            guard var destination = state.destinations[id], destination.way === way else {
                return (nil, nil, false)
            }
            let before = destination.events.progress
            let reason = destination.events.ended(
                outcome, atMilliseconds: now, fraction: environment.fraction())
            let progress = destination.events.progress
            if case .answer(.delivered, let events) = outcome { destination.accepted += events }
            // If the position has only skipped events, `flush` stores it within a second.
            var skipped = before
            skipped.committed = progress.committed
            let isSkip = skipped == progress
            if isSkip, before != progress { destination.isUnstored = true }
            if !isSkip { destination.isUnstored = false }
            state.destinations[id] = destination
            return (progress, reason, isSkip)
        }
        if let progress, !isStored {
            do {
                try environment.consumers.keep([id: progress])
            } catch {
                note("position not stored", id, error)
                // Stored again within a second.
                state.withLock { $0.destinations[id]?.isUnstored = true }
            }
        }
        if let progress, let reason {
            do {
                try pause(id, reason, progress, at: now)
            } catch {
                note("pause not stored", id, error)
            }
        }
        // Reset only after storing, because the next delivery must store its progress later.
        state.withLock { if $0.destinations[id]?.way === way { $0.destinations[id]?.isBusy = false } }
        advance(id)
        busy.leave()
    }

    private func pause(
        _ id: EventConsumerID, _ reason: WayPause.Reason, _ progress: DeliveryProgress,
        at now: Int64
    ) throws {
        environment.log.note(
            .warning, "delivery paused", Self.labels(id) + [("reason", reason.rawValue)])
        try queue.sync { try kind(id).pause(id, reason, progress, atMilliseconds: now) }
    }

    // MARK: Tests and replays

    private func deliver(_ begun: DeliveryRequest, _ route: DeliveryRoute, _ way: any Way) {
        let id = route.id
        let current = Lock(begun)
        var batch = DeliveryBatch(
            appID: id.appID, progress: DeliveryProgress(committed: begun.after)
        ) { [self] digest, _ in
            let request = current.withLock { request in
                request.willSend(digest: digest, newID: DeliveryRequest.newMessageID)
                return request
            }
            if request != begun { try queue.sync { try kind(id).keep(request, isOver: false) } }
            return request.messageID
        }
        batch.kind = begun.kind == .replay ? .replay : .test
        batch.attempt = begun.failures + 1
        batch.limit = state.withLock { $0.destinations[id]?.events.limit } ?? 1
        batch.reached = begun.through
        var hasMore = false
        do {
            if begun.kind == .replay {
                let (page, positions) = try read(
                    route, after: begun.after, through: begun.through, limit: batch.limit)
                batch.events = page.events
                batch.reached = page.reached
                batch.positions = positions
                hasMore = page.hasMore
                guard !page.events.isEmpty else {
                    var next = begun
                    next.after = page.reached
                    return end(id, way, begun, hasMore ? next : nil)
                }
            }
        } catch {
            note("events not delivered", id, error)
            var next = begun
            next.nextMilliseconds = milliseconds + Retry.least
            return end(id, way, begun, next)
        }
        let (reached, count, hasMoreEvents) = (batch.reached, batch.events.count, hasMore)
        way.accept(batch) { [self] answer in
            environment.pool { [self] in
                let sent = current.withLock { $0 }
                if case .split = answer, count > 1 {
                    state.withLock { $0.destinations[id]?.limit(to: max(1, count / 2)) }
                }
                let next = sent.after(
                    answer, events: count, through: reached, hasMore: hasMoreEvents, retry: kind(id).retry,
                    atMilliseconds: milliseconds, newID: DeliveryRequest.newMessageID,
                    fraction: environment.fraction())
                end(id, way, sent, next)
            }
        }
    }

    /// Stores the next state of a request; nil if it is complete.
    private func end(
        _ id: EventConsumerID, _ way: any Way, _ request: DeliveryRequest, _ next: DeliveryRequest?
    ) {
        if next != request {
            queue.sync {
                do {
                    try kind(id).keep(next ?? request, isOver: next == nil)
                } catch {
                    note("request not stored", id, error)
                }
            }
        }
        state.withLock { state in
            guard state.destinations[id]?.way === way else { return }
            state.destinations[id]?.record(next ?? request, isOver: next == nil)
        }
        advance(id)
        busy.leave()
    }
}
