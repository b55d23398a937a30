package import CountersignCore
internal import CountersignJSON
package import GatewayHTTP
internal import GatewayModel

@testable package import GatewayIngest

/// A dialect with one event as its body and the app's write key in its path.
package struct ExampleDialect: Dialect {
    let path: RequestPath

    package init(path: RequestPath) {
        self.path = path
    }

    package var endpoints: [Endpoint] {
        [
            Endpoint(method: "POST", path: "/example/{writeKey}") {
                request, parameters throws(HTTPResponse) in
                try ingest(request, writeKey: String(parameters[0]))
            }.described(
                APIOperation(
                    summary: "Store one event", security: [[.bearerToken]], body: ["type": "object"],
                    answer: APIOperation.schema("Stored"))
            ).forPages
        ]
    }

    package var schemas: JSONObject { HTTPResponse.ingestedSchemas }

    private func ingest(_ request: HTTPRequest, writeKey: String) throws(HTTPResponse) -> HTTPOutcome {
        guard let app = path.apps.app(writeKey: writeKey) else {
            throw request.failure(401, "invalid_write_key", "no app has this write key")
        }
        let named: String?
        switch path.parsers.read(request, { $0["user"]?.string }) {
        case .success(let user): named = user
        case .failure(let invalid): throw request.failure(400, "invalid_json", invalid.reason)
        }
        let admission = AdmissionRequest(
            credential: Self.credential(request), userIDs: named.map { [$0] } ?? [])
        let (user, warning) = try path.admit(admission, app: app, request: request)
        let event = EventBatch.Event(
            messageID: request.id, kind: .track, userID: user,
            timestampMilliseconds: request.receivedMilliseconds, json: request.body.indices)
        let batch = EventBatch(
            appID: app.id, receivedMilliseconds: request.receivedMilliseconds, body: request.body,
            events: [event], proof: request.proof(dialect: "example"))
        return path.store(batch, for: request) { result in
            switch result {
            case .success(let outcome): .ingested(outcome, warning: warning)
            case .failure(let failure): failure.response(request)
            }
        }
    }

    private static func credential(_ request: HTTPRequest) -> Credential {
        let value = request.header("authorization") ?? ""
        return Credential(.userToken, value.hasPrefix("Bearer ") ? String(value.dropFirst(7)) : nil)
    }
}
