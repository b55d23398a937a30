internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// The native dialect: the shape of Segment's public HTTP API, with a signed-user token beside the write key.
struct NativeDialect: Sendable {
    let apps: AppRegistry
    let store: any EventStore
    let parsers: ParserPool
    let limits: GatewayLimits
    let now: @Sendable () -> Date

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/v1/batch") { request, _ in ingest(request, single: nil) }
        ]
            + EventKind.all.map { kind in
                Endpoint(method: "POST", path: "/v1/\(kind.rawValue)") { request, _ in
                    ingest(request, single: kind)
                }
            }
    }

    private func ingest(_ request: HTTPRequest, single: EventKind?) -> HTTPOutcome {
        // An unknown key in a header is refused before the body is looked at.
        let credentials: Credentials
        switch Credentials.read(request) {
        case .success(let read): credentials = read
        case .failure(let refusal): return .answer(refusal.response)
        }
        let decoded = parsers.parse(request) { root -> Decoded in
            NativeDecoder(limits: limits, request: request).decode(root, single: single)
        }
        let contents: Decoded.Contents
        switch decoded {
        case .refused(let response): return .answer(response)
        case .value(.refused(let response)): return .answer(response)
        case .value(.contents(let read)): contents = read
        }
        guard let writeKey = credentials.writeKey ?? contents.writeKey, let app = apps.app(writeKey: writeKey)
        else {
            return .answer(Credentials.unknownWriteKey(request))
        }
        let instant = now()
        let verdict = app.admit(
            AdmissionRequest(
                token: credentials.token, userIDs: contents.userIDs, deviceTime: contents.sentAt),
            at: instant.timeIntervalSince1970)
        func body(_ report: VerificationReport) -> AuthErrorBody {
            AuthErrorBody(
                report: report, enforcement: app.enforcement, requestID: request.id,
                serverMilliseconds: Int64(instant.timeIntervalSince1970 * 1000))
        }
        var warning: AuthErrorBody?
        switch verdict {
        case .rejected(let report): return .answer(body(report).rejection())
        case .acceptedWithWarning(let report): warning = body(report)
        case .anonymous, .notJudged, .accepted: break
        }
        var batch = EventBatch(
            appID: app.id, receivedMilliseconds: request.receivedMilliseconds, body: request.body)
        batch.events = contents.events
        guard !batch.events.isEmpty else {
            return .answer(Self.success(AppendOutcome(), contents.rejected, warning))
        }
        let result = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        return .later(
            start: { resume in
                store.append(batch) { outcome in
                    result.withLock { $0 = outcome }
                    resume()
                }
            },
            finish: {
                switch result.withLock({ $0 }) {
                case .success(let outcome): Self.success(outcome, contents.rejected, warning)
                case .failure(let failure): failure.response(request)
                case nil: .failure(500, code: "internal_error", reason: "try again", requestID: request.id)
                }
            })
    }

    private static func success(
        _ outcome: AppendOutcome, _ rejected: [RejectedEvent], _ warning: AuthErrorBody?
    ) -> HTTPResponse {
        var body = Array(
            #"{"success":true,"accepted":\#(outcome.accepted),"duplicates":\#(outcome.duplicates),"rejected":["#
                .utf8)
        for (position, event) in rejected.enumerated() {
            if position > 0 { body.append(UInt8(ascii: ",")) }
            JSONValue.object([
                "index": .integer(Int64(event.index)), "code": .string(event.code),
                "reason": .string(event.reason),
            ]).write(to: &body)
        }
        body.append(UInt8(ascii: "]"))
        if let warning {
            body.append(contentsOf: #","auth_warning":"#.utf8)
            warning.write(to: &body)
        }
        body.append(UInt8(ascii: "}"))
        return .json(200, body)
    }
}

/// An event that is not stored, now or ever: the sender should not send it again as it is.
struct RejectedEvent {
    /// Its place in the batch, from 0.
    let index: Int
    /// A stable word in snake case.
    let code: String
    /// What is wrong with it.
    let reason: String
}
