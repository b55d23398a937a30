package import CountersignCore
internal import CountersignJSON
package import GatewayHTTP
internal import GatewayModel

@testable package import GatewayIngest

/// A dialect with one event as its body and the app's id in its path.
package struct ExampleDialect: Dialect {
    let path: RequestPath

    package init(path: RequestPath) {
        self.path = path
    }

    package var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/example/{writeKey}") { request, parameters in
                ingest(request, writeKey: String(parameters[0]))
            }.described(
                APIOperation(
                    summary: "Store one event", security: [[.bearerToken]], body: ["type": "object"],
                    answer: APIOperation.schema("Stored"))
            ).forPages
        ]
    }

    package var schemas: JSONObject { HTTPResponse.ingestedSchemas }

    private func ingest(_ request: HTTPRequest, writeKey: String) -> HTTPOutcome {
        guard let app = path.apps.app(writeKey: writeKey) else {
            return .answer(
                .failure(
                    401, code: "invalid_write_key", reason: "no app has this write key",
                    requestID: request.id))
        }
        let user: String?
        switch path.parsers.parse(request, { $0["user"]?.string }) {
        case .failed(let response): return .answer(response)
        case .value(let named): user = named
        }
        let admission = AdmissionRequest(
            credential: Self.credential(request), userIDs: user.map { [$0] } ?? [])
        switch path.admit(admission, app: app, request: request) {
        case .failed(let response): return .answer(response)
        case .rejected(let error): return .answer(error.rejection())
        case .accepted(let user, let warning):
            let event = EventBatch.Event(
                messageID: request.id, kind: .track, userID: user,
                timestampMilliseconds: request.receivedMilliseconds, json: request.body.indices)
            let batch = EventBatch(
                appID: app.id, receivedMilliseconds: request.receivedMilliseconds, body: request.body,
                events: [event])
            return path.store(batch, for: request, dialect: "example") { result in
                switch result {
                case .success(let outcome): .ingested(outcome, warning: warning)
                case .failure(let failure): failure.response(request)
                }
            }
        }
    }

    private static func credential(_ request: HTTPRequest) -> Credential {
        let value = request.header("authorization") ?? ""
        return Credential(.userToken, value.hasPrefix("Bearer ") ? String(value.dropFirst(7)) : nil)
    }
}
