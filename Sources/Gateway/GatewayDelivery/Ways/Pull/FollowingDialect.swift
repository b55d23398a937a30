package import CountersignCore
package import GatewayHTTP
package import GatewayIngest
package import GatewayModel
package import GatewayStorage

package enum ReaderAccess: Sendable {
    case app(String)
    /// The token is valid, but not for reading events.
    case nothing
    /// The token does not exist or has expired.
    case unknown
}

/// Serves an app's events to backends, in the order of storage, by position or by named consumer.
package struct FollowingDialect: Dialect {
    /// The maximum time in seconds that a request may wait for events.
    static let longestWait = 60
    /// The allowed number of events in a response.
    static let pageSizes = 1...1_000

    let log: any EventLog
    let consumers: any EventConsumers
    let polls: LongPolls
    let apps: AppRegistry
    let parsers: ParserPool
    let limiter: RateLimiter<BytewiseText>
    /// Called on a thread that may block.
    let access: @Sendable (_ token: String) throws -> ReaderAccess
    /// Writes a change of a consumer, made with a token, to the audit log. Called on a thread that may block.
    let audit: Audit

    package typealias Audit =
        @Sendable (
            _ token: String, _ action: String, _ consumer: EventConsumerID, _ after: JSONValue?
        ) throws -> Void

    package init(
        log: any EventLog, consumers: any EventConsumers, polls: LongPolls, apps: AppRegistry,
        parsers: ParserPool, limiter: RateLimiter<BytewiseText>,
        access: @escaping @Sendable (_ token: String) throws -> ReaderAccess, audit: @escaping Audit
    ) {
        self.log = log
        self.consumers = consumers
        self.polls = polls
        self.apps = apps
        self.parsers = parsers
        self.limiter = limiter
        self.access = access
        self.audit = audit
    }

    package var endpoints: [Endpoint] {
        let consumers = "/v1/apps/{app}/consumers"
        let one = consumers + "/{name}"
        return [
            endpoint("GET", "/v1/apps/{app}/events", FollowingSchemas.events, list),
            endpoint("GET", consumers, FollowingSchemas.list, now(listConsumers)),
            endpoint("POST", consumers, FollowingSchemas.create, now(create)),
            endpoint("GET", one, FollowingSchemas.show, now(show)),
            endpoint("DELETE", one, FollowingSchemas.delete, now(delete)),
            endpoint("POST", one + "/poll", FollowingSchemas.poll, poll),
            endpoint("POST", one + "/ack", FollowingSchemas.acknowledge, now(acknowledge)),
            endpoint("POST", one + "/release", FollowingSchemas.release, now(release)),
            endpoint("POST", one + "/seek", FollowingSchemas.seek, now(seek)),
        ]
    }

    package var schemas: JSONObject { FollowingSchemas.all }

    // MARK: Every request

    /// An operation, and the seconds that it may wait for events.
    private struct Reading: Sendable {
        var waitSeconds = 0
        /// Whether events are leased to the request for some time.
        var leases = false
        let read: @Sendable () throws -> LongPolls.ReadResult
    }

    private func endpoint(
        _ method: String, _ path: String, _ operation: APIOperation,
        _ task: @escaping @Sendable (FollowingCall) throws -> Reading
    ) -> Endpoint {
        Endpoint(method: method, path: path) { request, parameters in
            guard let token = FollowingCall.token(of: request) else {
                return .answer(Self.unauthenticated.response(requestID: request.id))
            }
            let reading = Result {
                let call = try FollowingCall(request, parameters, parsers)
                try call.checkParameters(operation.parameters)
                return try task(call)
            }
            return begin(reading, String(parameters[0]), token, request)
        }.described(operation)
    }

    private static let unauthenticated = FollowingError(
        401, "unauthenticated", "send an API token with the scope reader as Authorization: Bearer")

    /// Runs the request. Validation errors are reported only after authentication.
    private func begin(
        _ reading: Result<Reading, any Error>, _ appID: String, _ token: String, _ request: HTTPRequest
    ) -> HTTPOutcome {
        let requestID = request.id
        let checks = Lock(0)
        let check: @Sendable () -> HTTPResponse? = {
            do {
                // Checked each time, because the token may be deleted while the request waits.
                let earlier = checks.withLock { $0 }
                let rejection = Self.rejection(
                    of: try access(token), to: appID, exists: apps.app(id: appID) != nil,
                    wasAllowed: earlier > 0)
                if let rejection { throw rejection }
                // Counted at the second check, so that a request over the limit of waiting requests does not count.
                if earlier == 1 { try count(appID) }
                checks.withLock { $0 += 1 }
                return nil
            } catch {
                return Self.response(error, requestID)
            }
        }
        let read: @Sendable () -> LongPolls.ReadResult = {
            do {
                return try reading.get().read()
            } catch {
                return .answer(Self.response(error, requestID))
            }
        }
        let valid = try? reading.get()
        let (wait, leases) = (valid?.waitSeconds ?? 0, valid?.leases ?? false)
        request.endsWithPeer = leases || wait > 0
        let isGone: @Sendable () -> Bool = { [peer = request.peer] in leases && peer?.hasHungUp == true }
        let outcome = polls.outcome(
            of: appID, from: request.clientAddress, waitSeconds: wait,
            busy: FollowingError.tooMany.response(requestID: requestID), isGone: isGone, check: check,
            read: read)
        guard case .later(let start, let poll) = outcome else { return outcome }
        return .later(
            start: start,
            poll: {
                let response = poll()
                // Unauthenticated requests are not attributed to the app in logs or metrics.
                if let response, ![401, 403, 404].contains(response.status) { request.context.appID = appID }
                return response
            })
    }

    /// `wasAllowed` is true if an earlier check has allowed the request. If the app was deleted meanwhile, its tokens
    /// are deleted too: 404, not 401.
    static func rejection(
        of access: ReaderAccess, to appID: String, exists: Bool, wasAllowed: Bool
    ) -> FollowingError? {
        switch access {
        case .app(let opened) where opened == appID: break
        case .unknown where wasAllowed && !exists: break
        case .app, .nothing:
            return FollowingError(
                403, "forbidden",
                "this token cannot read the events of this app; create one with the scope reader for it")
        case .unknown:
            return FollowingError(401, "unauthenticated", "there is no such API token, or it has expired")
        }
        return exists ? nil : FollowingError(404, "app_not_found", "there is no such app")
    }

    /// Applies the app's rate limit. Unauthenticated requests do not count.
    private func count(_ appID: String) throws {
        guard case .limited(let seconds) = limiter.take(BytewiseText(appID)) else { return }
        throw FollowingError(
            429, "rate_limited", "too many requests read the events of this app; try again after Retry-After",
            retryAfterSeconds: seconds)
    }

    private static func response(_ error: any Error, _ requestID: String) -> HTTPResponse {
        let rejection =
            switch error {
            case let rejection as FollowingError: rejection
            case let failure as ConsumerFailure: FollowingError(failure)
            case let fault as EventPositions.Fault: FollowingError(fault)
            default:
                FollowingError(
                    503, "storage_unavailable", "the events cannot be read now; try again",
                    retryAfterSeconds: 5)
            }
        return rejection.response(requestID: requestID)
    }

    /// A request that does not wait for events.
    private func now(
        _ work: @escaping @Sendable (FollowingCall) throws -> HTTPResponse
    ) -> @Sendable (FollowingCall) throws -> Reading {
        { call in Reading { .answer(try work(call)) } }
    }

    // MARK: By position

    private func list(_ call: FollowingCall) throws -> Reading {
        let limit = try call.number("limit", Self.pageSizes, else: 100)
        let wait = try call.number("wait", 0...Self.longestWait, else: 0)
        let query = EventQuery(appID: call.appID, filter: try call.filterOfQuery())
        let after = try call.text("after", longest: FollowingCall.longestPosition)
        // The position up to which no event matched. The next read starts there.
        let scannedThrough = Lock<Int64?>(nil)
        return Reading(waitSeconds: wait) {
            let positions = try log.positions()
            let from =
                try scannedThrough.withLock { $0 }
                ?? after.map { try positions.sequence(of: $0, in: call.appID) } ?? 0
            var range = try log.follow(query, after: from, limit: limit)
            // A reader without a position starts with the oldest event and misses nothing. A position with the
            // number 0 is from an empty log, so its reader can miss events.
            if after == nil { range.gap = .none }
            scannedThrough.withLock { $0 = range.scannedThrough }
            let answer = FollowingAnswer.events(range, try log.positions(), for: call)
            // Responds to a gap at once, because the next read starts after the gap and would not report it.
            let isNew = !range.events.isEmpty || range.hasMore || range.gap.isOpen
            return isNew ? .answer(answer) : .nothing(answer, againAfter: nil)
        }
    }

    // MARK: By consumer

    private func id(_ call: FollowingCall) throws(FollowingError) -> EventConsumerID {
        guard EventConsumerID.isName(call.name) else {
            throw FollowingError(
                ConsumerFailure(
                    .notFound, "a consumer's name must be 1 to 64 of the characters A-Z a-z 0-9 . _ -"))
        }
        return EventConsumerID(appID: call.appID, name: call.name)
    }

    private func answer(_ consumer: EventConsumer, _ call: FollowingCall, status: Int = 200) throws
        -> HTTPResponse
    {
        FollowingAnswer.json(status, consumer.json(try log.positions()), for: call)
    }

    private func listConsumers(_ call: FollowingCall) throws -> HTTPResponse {
        let positions = try log.positions()
        let all = try consumers.all(.pull, of: call.appID).map { $0.json(positions) }
        return FollowingAnswer.json(200, ["items": .array(all)], for: call)
    }

    private func create(_ call: FollowingCall) throws -> HTTPResponse {
        try call.checkMembers(
            "name", "filter", "partitions", "holds_retention", "hold_days", "from", "time_ms", "position")
        guard let name = try call.member("name", longest: 64) else {
            throw FollowingError.invalid("name", "is missing")
        }
        let days = try call.integer("hold_days", 1...EventConsumerSettings.longestHold)
        let holds = try call.flag("holds_retention")
        guard holds || days == nil else {
            throw FollowingError.invalid("hold_days", "needs holds_retention: true")
        }
        let settings = EventConsumerSettings(
            filter: try call.filterOfBody(),
            partitions: try call.integer("partitions", 1...EventConsumerSettings.mostPartitions) ?? 1,
            holdDays: holds ? days ?? EventConsumerSettings.usualHold : nil)
        let start = try call.start(try log.positions()) ?? .start
        let made = try consumers.create(EventConsumerID(appID: call.appID, name: name), settings, from: start)
        try audit(call.token, "consumer.create", made.id, call.members(except: "filter", "name"))
        return try answer(made, call, status: 201)
    }

    private func show(_ call: FollowingCall) throws -> HTTPResponse {
        try answer(try consumers.find(try id(call)), call)
    }

    private func delete(_ call: FollowingCall) throws -> HTTPResponse {
        let id = try id(call)
        try consumers.delete(id)
        try audit(call.token, "consumer.delete", id, nil)
        return FollowingAnswer.json(200, [:], for: call)
    }

    private func poll(_ call: FollowingCall) throws -> Reading {
        let id = try id(call)
        try call.checkMembers("limit", "wait", "lease_seconds")
        let limit = try call.integer("limit", Self.pageSizes) ?? 100
        let wait = try call.integer("wait", 0...Self.longestWait) ?? 0
        let seconds = try call.integer("lease_seconds", EventConsumerRules.leaseSeconds) ?? 60
        return Reading(waitSeconds: wait, leases: true) {
            switch try consumers.lease(id, limit: limit, seconds: seconds) {
            case .leased(let lease):
                return .answer(FollowingAnswer.lease(lease, hasMore: true, try log.positions(), for: call))
            case .nothing(let hasMore, let untilExpiry):
                let answer = FollowingAnswer.lease(nil, hasMore: hasMore, try log.positions(), for: call)
                return hasMore ? .answer(answer) : .nothing(answer, againAfter: untilExpiry)
            }
        }
    }

    private func lease(_ call: FollowingCall) throws(FollowingError) -> String {
        guard let lease = try call.member("lease", longest: FollowingCall.longestPosition) else {
            throw .invalid("lease", "is missing")
        }
        return lease
    }

    private func acknowledge(_ call: FollowingCall) throws -> HTTPResponse {
        try call.checkMembers("lease", "position")
        let lease = try lease(call)
        let positions = try log.positions()
        let through = try call.member("position", longest: FollowingCall.longestPosition).map {
            try positions.sequence(of: $0, in: call.appID)
        }
        let position = try consumers.acknowledge(lease, of: try id(call), through: through)
        return FollowingAnswer.json(
            200, ["position": .string(positions.text(after: position, in: call.appID))], for: call)
    }

    private func release(_ call: FollowingCall) throws -> HTTPResponse {
        try call.checkMembers("lease")
        try consumers.release(try lease(call), of: try id(call))
        return FollowingAnswer.json(200, [:], for: call)
    }

    private func seek(_ call: FollowingCall) throws -> HTTPResponse {
        try call.checkMembers("from", "time_ms", "position")
        guard let start = try call.start(try log.positions()) else {
            throw FollowingError.invalid("the body", "takes one of from, time_ms and position")
        }
        let moved = try consumers.seek(try id(call), to: start)
        try audit(call.token, "consumer.seek", moved.id, call.members())
        return try answer(moved, call)
    }
}
