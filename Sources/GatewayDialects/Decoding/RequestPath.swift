package import CountersignCore
internal import CountersignJOSE
package import Foundation
package import GatewayAdmission
package import GatewayHTTP
package import GatewayModel
internal import GatewayObservability

/// What every dialect works with: the one path from a decoded request to its answer.
///
/// A dialect decodes, then goes through ``admit(_:app:request:)`` and, when it stores, ``store(_:for:dialect:finish:)``. So each
/// request ends in one verdict, and is answered after its commit.
package struct RequestPath: Sendable {
    let apps: AppRegistry
    let store: any EventStore
    package let parsers: ParserPool
    let limits: GatewayLimits
    let appLimiter: RateLimiter<BytewiseText>
    /// The clock that tokens are judged by.
    let now: @Sendable () -> Date
    /// Where reading may wait for the disk.
    private let readers = BoundedQueue(label: "readers", places: 128)

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

    /// Judges a request once.
    func admit(_ admission: AdmissionRequest, app: AdmittedApp, request: HTTPRequest) -> Admitted {
        defer { request.context.span?.admissionEnded = RequestSpan.instant }
        if let refusal = overLimit(of: app, request) { return .refused(refusal) }
        let instant = now().timeIntervalSince1970
        request.context.span?.verifyBegan = RequestSpan.instant
        let verdict = app.admit(admission, at: instant)
        request.context.span?.verifyEnded = RequestSpan.instant
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

    /// The refusal of an app that has had more requests than it may; nil for all others.
    func overLimit(of app: AdmittedApp, _ request: HTTPRequest) -> HTTPResponse? {
        let refusal = appLimiter.take(BytewiseText(app.id)).refusal(
            request, policy: "app", burst: appLimiter.burst)
        if refusal != nil { request.context.appID = app.id }
        return refusal
    }

    private func noteKeyUse(_ report: VerificationReport, app: AdmittedApp, request: HTTPRequest) {
        guard let keyID = report.matchedKeyID else { return }
        store.noteKeyUse(appID: app.id, keyID: keyID, milliseconds: request.receivedMilliseconds)
    }

    /// What a dialect has to do after admission.
    enum Admitted {
        /// Go on: the user is the one whom an access token is for or else the first that the request names, nil when
        /// it names none. A warning rides along with the answer.
        case accepted(user: String?, warning: AuthErrorBody?)
        /// Answer with this: the app has had more requests than it may.
        case refused(HTTPResponse)
        /// Answer with this error in the dialect's shape.
        case rejected(AuthErrorBody)
    }

    /// Stores a batch of a dialect with what admission said of it; `finish` makes the answer when it is on disk or has failed.
    func store(
        _ batch: EventBatch, for request: HTTPRequest, dialect: String,
        finish: @escaping (Result<AppendOutcome, StoreFailure>) -> HTTPResponse
    ) -> HTTPOutcome {
        guard !batch.isEmpty else { return .answer(finish(.success(AppendOutcome()))) }
        let judged = batch.with(request.context.proof(dialect: dialect, requestID: request.id))
        let isTraced = request.context.span != nil
        // As `waiting` does it, and compiled for this value: every event that is stored comes by here.
        let ended = Lock<(result: Result<AppendOutcome, StoreFailure>, instant: UInt64?)?>(nil)
        return .later(
            start: { [store] resume in
                if isTraced { request.context.span?.storeBegan = RequestSpan.instant }
                store.append(judged) { result in
                    ended.withLock { $0 = (result, isTraced ? RequestSpan.instant : nil) }
                    resume()
                }
            },
            poll: {
                guard let (result, instant) = ended.withLock({ $0 }) else { return nil }
                if let instant { request.context.span?.storeEnded = instant }
                if case .success(let outcome) = result { request.context.note(outcome) }
                return finish(result)
            })
    }

    /// Answers with what `work` has read, on a queue where it may wait for the disk. Returns an outcome that is not
    /// there yet, or an answer when too many wait.
    func read<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value,
        finish: @escaping (Result<Value, StoreFailure>) -> HTTPResponse
    ) -> HTTPOutcome {
        guard readers.take() else {
            return .answer(finish(.failure(StoreFailure(reason: .overloaded, detail: "too many read"))))
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
