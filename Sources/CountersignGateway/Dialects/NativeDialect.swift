internal import CountersignCore
internal import CountersignJOSE
internal import Foundation

/// The native dialect: the shape of Segment's public HTTP API, with a signed-user token beside the write key.
struct NativeDialect: Sendable {
    let path: RequestPath

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/v1/batch") { request, _ in ingest(request, single: nil) }
                .described(.ingest("Store a batch of events", body: "Batch"))
        ]
            + EventKind.all.map { kind in
                Endpoint(method: "POST", path: "/v1/\(kind.rawValue)") { request, _ in
                    ingest(request, single: kind)
                }.described(.ingest("Store one \(kind.rawValue) event", body: "Event"))
            }
    }

    private func ingest(_ request: HTTPRequest, single: EventKind?) -> HTTPOutcome {
        let credentials: Credentials
        switch Credentials.read(request) {
        case .success(let read): credentials = read
        case .failure(let refusal): return .answer(refusal.response)
        }
        let decoded = path.parsers.parse(request) { root in
            NativeDecoder(limits: path.limits, request: request).decode(root, single: single)
        }
        let contents: Decoded.Contents
        switch decoded {
        case .refused(let response), .value(.refused(let response)): return .answer(response)
        case .value(.contents(let read)): contents = read
        }
        guard let writeKey = credentials.writeKey ?? contents.writeKey,
            let app = path.apps.app(writeKey: writeKey)
        else { return .answer(Credentials.unknownWriteKey(request)) }
        let admission = AdmissionRequest(
            token: credentials.token, userIDs: contents.userIDs, deviceTime: contents.sentAt)
        switch path.admit(admission, app: app, request: request) {
        case .refused(let response): return .answer(response)
        case .rejected(let error): return .answer(error.rejection())
        case .accepted(let warning):
            let batch = EventBatch(
                appID: app.id, receivedMilliseconds: request.receivedMilliseconds, body: request.body,
                events: contents.events)
            request.trail.rejected = contents.rejected.count
            return path.store(batch, for: request) { result in
                switch result {
                case .success(let outcome): .ingested(outcome, rejected: contents.rejected, warning: warning)
                case .failure(let failure): failure.response(request)
                }
            }
        }
    }
}

extension APIOperation {
    fileprivate static func ingest(_ summary: String, body: String) -> APIOperation {
        APIOperation(
            summary: summary, credential: .writeKey, body: schema(body), answer: schema("Stored"))
    }
}
