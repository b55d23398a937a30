internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

/// Runs the followers of all webhooks, streams and files (ways) on a thread pool of fixed size. A way that waits for
/// its receiver uses no thread of the pool, so it does not delay other ways.
package final class DeliveryRunner: Sendable {
    /// The state of a way, for metrics.
    package struct Count: Sendable {
        package let id: EventConsumerID
        /// The number of events that the receiver has accepted since this gateway began to deliver to it.
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
    }

    private static let hour: Int64 = 3_600_000
    private static let lagPause: Int64 = 10_000

    private let kinds: [any WayKind]
    private let directory: AppDirectory
    private let events: any EventLog
    private let consumers: any EventConsumers
    private let arrivals: EventArrivals
    private let log: GatewayLog
    private let pool: WayRun
    private let now: @Sendable () -> Date
    private let fraction: @Sendable () -> Double
    private let state = Lock(State())
    /// Serializes access to the control database.
    private let queue = DispatchQueue(label: "delivery")
    private let ticker: Ticker
    private let busy = DispatchGroup()

    /// `pool` runs work on a thread of the pool, and `fraction` returns a random number from 0 to 1.
    package init(
        _ kinds: [any WayKind], directory: AppDirectory, events: any EventLog, consumers: any EventConsumers,
        arrivals: EventArrivals, log: GatewayLog, pool: @escaping WayRun, now: @escaping @Sendable () -> Date,
        fraction: @escaping @Sendable () -> Double = { Double.random(in: 0...1) }
    ) {
        self.kinds = kinds
        self.directory = directory
        self.events = events
        self.consumers = consumers
        self.arrivals = arrivals
        self.log = log
        self.pool = pool
        self.now = now
        self.fraction = fraction
        ticker = Ticker(queue: queue, everySeconds: 1)
    }

    package func start() {
        queue.async { [weak self] in self?.checkNow() }
        ticker.start { [weak self] in self?.checkNow() }
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
    package func check() { queue.sync { checkNow() } }

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

    private var milliseconds: Int64 { Milliseconds(now()).count }

    private func note(_ message: StaticString, _ id: EventConsumerID, _ error: any Error) {
        log.note(.error, message, Self.labels(id) + [("detail", "\(error)")])
    }

    private static func labels(_ id: EventConsumerID) -> [(StaticString, String)] {
        [("app", id.appID), ("way", id.kind.noun), ("name", id.name)]
    }

    // MARK: On the queue

    private func checkNow() {
        for kind in kinds {
            guard kind.hasDuty() else {
                close(kind.kind)
                continue
            }
            do {
                try reload(kind)
            } catch {
                log.note(
                    .error, "deliveries not loaded", [("way", kind.kind.noun), ("detail", "\(error)")])
            }
        }
        flush()
        do {
            try sweep()
            try checkLag()
        } catch {
            log.note(.error, "deliveries not checked", [("detail", "\(error)")])
        }
        for id in ids { advance(id) }
    }

    /// Closes all webhooks, streams or files while another gateway delivers. `reload` opens them again.
    private func close(_ kind: EventConsumerID.Kind) {
        state.withLock { $0.versions[kind] = nil }
        close { $0.kind == kind }
    }

    private func close(where isClosed: (EventConsumerID) -> Bool) {
        let ways = state.withLock { state in
            let closed = state.destinations.filter { isClosed($0.key) }
            for id in closed.keys { state.destinations[id] = nil }
            return closed.values.map(\.way)
        }
        for way in ways { way.close() }
    }

    /// Loads changes by operators.
    private func reload(_ kind: any WayKind) throws {
        let version = try directory.version()
        let known = state.withLock { $0.versions[kind.kind] }
        guard version != known else { return }
        let routes = try kind.routes()
        let kept = try progress(of: routes, kind, isFirst: known == nil)
        close { id in id.kind == kind.kind && !routes.contains { $0.id == id } }
        state.withLock { state in
            for route in routes {
                state.destinations[route.id]?.apply(route)
                guard state.destinations[route.id] == nil else { continue }
                let progress = kept[route.id] ?? DeliveryProgress(committed: route.start)
                state.destinations[route.id] = Destination(route, of: kind, progress)
            }
            state.versions[kind.kind] = version
        }
    }

    /// The stored progress of all routes. Creates missing rows, and deletes the rows of deleted routes.
    private func progress(
        of routes: [DeliveryRoute], _ kind: any WayKind, isFirst: Bool
    ) throws -> [EventConsumerID: DeliveryProgress] {
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
                // The earlier version stored no epoch in a stream's row: another epoch is an older position.
                progress.map({ $0.epoch != before.epoch || $0.committed < before.committed }) ?? true
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
            try consumers.keep(moved)
        } catch {
            log.note(.error, "positions not stored", [("detail", "\(error)")])
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
        let now = milliseconds
        let watched = state.withLock { state -> [EventConsumerID: Destination] in
            guard DueTime.hasCome(state.nextLagCheck, at: now, within: Self.lagPause) else { return [:] }
            state.nextLagCheck = now + Self.lagPause
            return state.destinations.filter { $0.value.route.alertSeconds != nil }
        }
        for kind in Set(watched.keys.map(\.kind)) {
            for consumer in try consumers.all(kind, of: nil) {
                guard let destination = watched[consumer.id], let limit = destination.route.alertSeconds,
                    let oldest = consumer.oldestUnreadMilliseconds,
                    now - oldest > Milliseconds(seconds: limit).count
                else {
                    state.withLock { $0.destinations[consumer.id]?.isLate = false }
                    continue
                }
                if destination.isLate { continue }
                log.note(
                    .error, "delivery is late",
                    Self.labels(consumer.id) + [("lag_events", String(consumer.lag))])
                try destination.kind.sendLagAlert(
                    consumer, destination.events.progress, atMilliseconds: now)
                // Set after the alert is stored, so that the next check repeats a failed alert.
                state.withLock { $0.destinations[consumer.id]?.isLate = true }
            }
        }
    }

    // MARK: On the pool

    /// Starts the next job of a way, if one is due.
    private func advance(_ id: EventConsumerID) {
        let now = milliseconds
        // Taken before the log is read, so that events stored after the ticket wake the way.
        let ticket = arrivals.ticket
        let begun = state.withLock { state -> (Destination.Job, Destination)? in
            guard !state.isDraining, let job = state.destinations[id]?.begin(atMilliseconds: now),
                let destination = state.destinations[id]
            else { return nil }
            return (job, destination)
        }
        guard let (job, destination) = begun else { return }
        busy.enter()
        pool { [self] in
            switch job {
            case .events(let work): deliver(work, destination, ticket)
            case .request(let request): deliver(request, destination)
            }
        }
    }

    private func read(
        _ route: DeliveryRoute, after sequence: Int64, through: Int64?, limit: Int
    ) throws -> (page: EventRange, positions: EventPositions) {
        var page = try events.follow(
            EventQuery(appID: route.id.appID, filter: route.filter), after: sequence, limit: limit)
        // Read after the events, so that `positions.head` is not before the last event.
        let positions = try events.positions()
        if let through {
            page.events.removeAll { $0.sequence > through }
            page.hasMore = page.hasMore && page.scannedThrough < through
            page.scannedThrough = min(page.scannedThrough, through)
        }
        page.gap = page.gap.of(route.id.kind, after: sequence)
        return (page, positions)
    }

    private func deliver(
        _ work: Follower.Work, _ destination: Destination, _ ticket: EventArrivals.Ticket
    ) {
        let (route, way, id) = (destination.route, destination.way, destination.route.id)
        let progress = state.withLock { $0.destinations[id]?.events.progress }
        // An operator may have moved the position since the work began.
        guard let progress, progress.committed == work.after else {
            return end(id, way, .answer(.notTried, events: 0))
        }
        var batch = DeliveryBatch(route, progress) { [self] digest, through in
            try identify(id, way, digest, through)
        }
        batch.attempt = work.attempt
        // The position after which the first gap begins.
        let gapStart = Lock<Int64?>(nil)
        do {
            if work.isProbe {
                batch.kind = .probe
                batch.positions = try events.positions()
            } else {
                let (page, positions) = try read(
                    route, after: work.after, through: work.through, limit: work.limit)
                batch.events = page.events
                batch.scannedThrough = page.scannedThrough
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
                    if !page.hasMore { wait(destination, ticket) }
                    return end(
                        id, way,
                        .nothing(through: page.scannedThrough, hasMore: page.hasMore, gap: batch.gap))
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
                log.note(.error, "delivery missed events", Self.labels(id))
            }
            pool { self.end(id, way, .answer(answer, events: count)) }
        }
    }

    /// Waits for events of the app stored since the ticket.
    private func wait(_ destination: Destination, _ ticket: EventArrivals.Ticket) {
        let id = destination.route.id
        let old = state.withLock { $0.destinations[id]?.waiter }
        if let old { arrivals.cancel(old) }
        let delay = destination.kind.gatherSeconds
        let waiter = arrivals.wait(for: id.appID, since: ticket) { [weak self] in
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
        try consumers.keep([id: progress])
        return message
    }

    /// The way was deleted, or another gateway delivers to it now.
    private struct Gone: Error {}

    private func end(_ id: EventConsumerID, _ way: any Way, _ outcome: Follower.Outcome) {
        let now = milliseconds
        let ended = state.withLock { state -> (Destination, WayPause.Reason?, isSkip: Bool)? in
            // The way may have been closed, and another way opened under this id.
            guard var destination = state.destinations[id], destination.way === way else { return nil }
            let before = destination.events.progress
            let reason = destination.events.ended(
                outcome, atMilliseconds: now, fraction: fraction())
            let progress = destination.events.progress
            if case .answer(.delivered, let events) = outcome { destination.accepted += events }
            // If the position has only skipped events, `flush` stores it within a second.
            var skipped = before
            skipped.committed = progress.committed
            let isSkip = skipped == progress
            if isSkip, before != progress { destination.isUnstored = true }
            if !isSkip { destination.isUnstored = false }
            state.destinations[id] = destination
            return (destination, reason, isSkip)
        }
        if let (destination, reason, isSkip) = ended {
            do {
                if !isSkip { try consumers.keep([id: destination.events.progress]) }
            } catch {
                note("position not stored", id, error)
                // `flush` repeats the write within a second.
                state.withLock { $0.destinations[id]?.isUnstored = true }
            }
            if let reason { pause(destination, reason, at: now) }
        }
        // `isBusy` is reset after storing. Otherwise the next delivery could store its progress before this write.
        state.withLock { if $0.destinations[id]?.way === way { $0.destinations[id]?.isBusy = false } }
        advance(id)
        busy.leave()
    }

    private func pause(_ destination: Destination, _ reason: WayPause.Reason, at now: Int64) {
        let id = destination.route.id
        log.note(.warning, "delivery paused", Self.labels(id) + [("reason", reason.rawValue)])
        do {
            try queue.sync {
                try destination.kind.pause(id, reason, destination.events.progress, atMilliseconds: now)
            }
        } catch {
            note("pause not stored", id, error)
        }
    }

    // MARK: Tests and replays

    private func deliver(_ begun: DeliveryRequest, _ destination: Destination) {
        let (route, kind) = (destination.route, destination.kind)
        let current = Lock(begun)
        var batch = DeliveryBatch(route, DeliveryProgress(committed: begun.after)) { [queue] digest, _ in
            let request = current.withLock { request in
                request.willSend(digest: digest, newID: DeliveryRequest.newMessageID)
                return request
            }
            if request != begun { try queue.sync { try kind.keep(request, isOver: false) } }
            return request.messageID
        }
        batch.kind = begun.kind == .replay ? .replay : .test
        batch.attempt = begun.failures + 1
        batch.scannedThrough = begun.through
        do {
            if begun.kind == .replay {
                let (page, positions) = try read(
                    route, after: begun.after, through: begun.through,
                    limit: destination.events.limit)
                batch.events = page.events
                batch.scannedThrough = page.scannedThrough
                batch.positions = positions
                batch.hasMore = page.hasMore
                guard !page.events.isEmpty else {
                    var next = begun
                    next.after = page.scannedThrough
                    return end(destination, begun, page.hasMore ? next : nil)
                }
            }
        } catch {
            note("events not delivered", route.id, error)
            var next = begun
            next.nextMilliseconds = milliseconds + Retry.least
            return end(destination, begun, next)
        }
        let (scannedThrough, count, hasMore) = (batch.scannedThrough, batch.events.count, batch.hasMore)
        destination.way.accept(batch) { [self] answer in
            pool { [self] in
                let sent = current.withLock { $0 }
                if case .split = answer, count > 1 {
                    state.withLock { $0.destinations[route.id]?.events.limit(to: max(1, count / 2)) }
                }
                let next = sent.after(
                    answer, events: count, through: scannedThrough, hasMore: hasMore, retry: kind.retry,
                    atMilliseconds: milliseconds, newID: DeliveryRequest.newMessageID,
                    fraction: fraction())
                end(destination, sent, next)
            }
        }
    }

    /// Stores the next state of a request, or deletes the request if `next` is nil.
    private func end(_ destination: Destination, _ request: DeliveryRequest, _ next: DeliveryRequest?) {
        let id = destination.route.id
        if next != request {
            queue.sync {
                do {
                    try destination.kind.keep(next ?? request, isOver: next == nil)
                } catch {
                    note("request not stored", id, error)
                }
            }
        }
        state.withLock { state in
            guard state.destinations[id]?.way === destination.way else { return }
            state.destinations[id]?.record(next ?? request, isOver: next == nil)
        }
        advance(id)
        busy.leave()
    }
}
