package import CountersignCore
internal import CountersignJOSE
package import Foundation
package import GatewayHTTP
package import GatewayModel
internal import GatewayObservability

/// The steps that all dialects share. A dialect admits each request once, before or after decoding the body, and then
/// calls ``store(_:for:restricted:finish:)``. So a request is answered after its events are committed.
package struct RequestPath: Sendable {
    let apps: AppRegistry
    let store: any EventStore
    package let parsers: ParserPool
    let limits: GatewayLimits
    let appLimiter: RateLimiter<BytewiseText>
    let now: @Sendable () -> Date
    /// The queue for reads that may wait for the disk.
    private let readers = BoundedQueue(label: "readers", capacity: 128)

    package init(
        apps: AppRegistry, store: any EventStore, parsers: ParserPool, limits: GatewayLimits,
        appLimiter: RateLimiter<BytewiseText>, now: @escaping @Sendable () -> Date
    ) {
        self.apps = apps
        self.store = store
        self.parsers = parsers
        self.limits = limits
        self.appLimiter = appLimiter
        self.now = now
    }

    /// Returns the access token's subject or the request's first user, or throws a rejection in the native format.
    func admit(
        _ admission: AdmissionRequest, app: AdmittedApp, request: HTTPRequest
    ) throws(HTTPResponse) -> (user: String?, warning: AuthErrorBody?) {
        switch admitted(admission, app: app, request: request) {
        case .accepted(let user, let warning): return (user, warning)
        case .failed(let response): throw response
        case .rejected(let error): throw error.rejection()
        }
    }

    /// Applies the app's rate limit, verifies the token and applies the restrictions of users, once per request.
    func admitted(_ admission: AdmissionRequest, app: AdmittedApp, request: HTTPRequest) -> Admitted {
        defer { request.context.span?.admissionEnded = MonotonicClock.now }
        if let rejection = overLimit(of: app, request) { return .failed(rejection) }
        let instant = now().timeIntervalSince1970
        request.context.span?.verifyBegan = MonotonicClock.now
        let verdict = app.admit(admission, at: instant)
        request.context.span?.verifyEnded = MonotonicClock.now
        if let restrictions = app.restrictions,
            let users = verdict.users(of: admission),
            let rejection = restricted(restrictions, users: users, app: app, request, at: instant)
        {
            return .failed(rejection)
        }
        request.context.note(verdict, app: app)
        let credential = admission.credential
        request.context.userID = admission.userIDs.first
        if app.returnsByItself, credential.scheme == .userToken {
            request.context.tokenHash = credential.token.map(KnownTokens.hash)
        }
        if request.context.client == ClientInfo() {
            request.context.client = ClientInfo(userAgent: request.headerBytes("user-agent"))
        }
        func failure(_ report: VerificationReport, _ enforcement: Enforcement) -> AuthErrorBody {
            request.context.failure = FailedToken(
                token: credential.token, report: report, deviceTime: admission.deviceTime)
            if report.code == .noMatchingPublicKeys {
                apps.noteUnknownKey(credential.token, of: app.id, from: request.limitedUnit)
            }
            return AuthErrorBody(
                report: report, enforcement: enforcement, requestID: request.id,
                serverMilliseconds: Int64(instant * 1000))
        }
        switch verdict {
        case .rejected(let report): return .rejected(failure(report, .required))
        case .acceptedWithWarning(let report):
            return .accepted(user: request.context.userID, warning: failure(report, .optional))
        case .accepted(let report, _):
            noteKeyUse(report, app: app, request: request)
            if credential.scheme == .accessToken { request.context.userID = report.claims?.subject }
        case .anonymous, .notJudged: break
        }
        return .accepted(user: request.context.userID, warning: nil)
    }

    func restricted(
        _ restrictions: UserRestrictions, users: [String], app: AdmittedApp, _ request: HTTPRequest,
        at instant: Double
    ) -> HTTPResponse? {
        request.context.restrictions = restrictions
        let rejection = restrictions.rejection(
            ofUsers: users, at: Milliseconds(seconds: instant).count)
        if rejection != nil {
            request.context.appID = app.id
            request.context.verdict = nil
        }
        return rejection?.response(request)
    }

    func overLimit(of app: AdmittedApp, _ request: HTTPRequest) -> HTTPResponse? {
        let rejection = appLimiter.take(BytewiseText(app.id)).rejection(
            request, policy: "app", burst: appLimiter.burst)
        if rejection != nil { request.context.appID = app.id }
        return rejection
    }

    private func noteKeyUse(_ report: VerificationReport, app: AdmittedApp, request: HTTPRequest) {
        guard let keyID = report.matchedKeyID else { return }
        store.noteKeyUse(appID: app.id, keyID: keyID, milliseconds: request.receivedMilliseconds)
    }

    enum Admitted {
        /// The access token's subject or the request's first user; nil if the request names no user.
        case accepted(user: String?, warning: AuthErrorBody?)
        case failed(HTTPResponse)
        /// Respond with this error in the dialect's format.
        case rejected(AuthErrorBody)
    }

    /// Stores a batch. `finish` creates the response after the write has succeeded or failed, `restricted` the response
    /// for a blocked or limited device.
    func store(
        _ batch: EventBatch, for request: HTTPRequest,
        restricted: (HTTPResponse) -> HTTPResponse = { $0 },
        finish: @escaping (Result<AppendOutcome, StoreFailure>) -> HTTPResponse
    ) -> HTTPOutcome {
        guard !batch.isEmpty else { return .answer(finish(.success(AppendOutcome()))) }
        if let restrictions = request.context.restrictions {
            var devices = DistinctIDs()
            for event in batch.events { event.anonymousID.map { devices.insert($0) } }
            let rejection = restrictions.rejection(ofDevices: devices.ids, at: Milliseconds(now()).count)
            if let rejection {
                request.context.verdict = nil
                request.context.rejected = 0
                return .answer(restricted(rejection.response(request)))
            }
        }
        let storing = StoringRequest(request, batch, store, finish)
        return .later(start: { storing.start($0) }, poll: { storing.response() })
    }

    /// Stores decoded events. `body` contains the JSON of the events; nil means the request's body.
    func store(
        _ events: DecodedEvents, of app: AdmittedApp, body: [UInt8]? = nil, dialect: String,
        finish: @escaping (Result<AppendOutcome, StoreFailure>) -> HTTPResponse
    ) -> HTTPOutcome {
        let request = events.request
        request.context.rejected = events.rejected.count
        let batch = EventBatch(
            appID: app.id, receivedMilliseconds: request.receivedMilliseconds, body: body ?? request.body,
            events: events.events, customers: events.profiles.changes, proof: request.proof(dialect: dialect))
        return store(batch, for: request, finish: finish)
    }

    /// Runs `work`, which may wait for the disk, on a queue. If the queue is full, `finish` gets a failure at once.
    func read<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value,
        finish: @escaping (Result<Value, StoreFailure>) -> HTTPResponse
    ) -> HTTPOutcome {
        guard readers.take() else {
            return .answer(finish(.failure(StoreFailure(reason: .overloaded, detail: "too many reads"))))
        }
        return .waiting({ [readers] completion in
            readers.async {
                completion(
                    Result { try work() }.mapError { StoreFailure(reason: .failed, detail: "\($0)") })
            }
        }) { result in
            var response = finish(result)
            response.changesNothing = true
            return response
        }
    }
}
