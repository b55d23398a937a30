internal import CountersignCore
package import GatewayHTTP

/// A protocol of other products whose clients get sent here by mistake. Each is answered with one sentence, in the
/// member that its clients print, and with a status after which they do not send the same events again.
package struct UnsupportedProtocol: Sendable {
    /// Whose protocol it is.
    let name: String
    var method = "POST"
    /// Where its clients send.
    let paths: [String]
    /// What its clients look for besides the members of every failure.
    let members: @Sendable (_ sentence: String) -> JSONObject

    static let all: [UnsupportedProtocol] = [
        UnsupportedProtocol(
            name: "PostHog",
            paths: [
                "/batch/", "/capture", "/i/v0/e", "/i/v0/ai/batch", "/e", "/s", "/decide", "/flags",
            ]
        ) { ["detail": .string($0)] },
        UnsupportedProtocol(
            name: "Amplitude", paths: ["/2/httpapi", "/httpapi", "/identify", "/groupidentify"],
            members: amplitude),
        // Amplitude's batches go there, and those of some of PostHog's libraries.
        UnsupportedProtocol(name: "Amplitude or PostHog", paths: ["/batch"]) { sentence in
            amplitude(sentence).merging(["detail": .string(sentence)]) { own, _ in own }
        },
        UnsupportedProtocol(
            name: "Mixpanel",
            paths: ["/track", "/engage", "/groups", "/import"]
        ) { ["status": 0, "error": .string($0)] },
        UnsupportedProtocol(
            name: "Snowplow",
            paths: ["/com.snowplowanalytics.snowplow/tp2", "/com.snowplowanalytics.iglu/v1"]
        ) { _ in [:] },
        UnsupportedProtocol(
            name: "Sentry",
            paths: ["envelope", "envelope/", "store", "store/"].map { "/api/{project}/" + $0 }
        ) { ["detail": .string($0)] },
        UnsupportedProtocol(
            name: "Customer.io", method: "PUT", paths: ["/api/v1/customers/{customer}"], members: customerIO),
        UnsupportedProtocol(
            name: "Customer.io",
            paths: [
                "/api/v1/customers/{customer}/events", "/api/v1/events", "/api/v2/entity", "/api/v2/batch",
            ],
            members: customerIO),
        UnsupportedProtocol(name: "Google Analytics", paths: ["/mp/collect", "/g/collect"]) { _ in [:] },
        // A google.rpc.Status in JSON; 3 is INVALID_ARGUMENT.
        UnsupportedProtocol(name: "OTLP", paths: ["/v1/traces", "/v1/metrics", "/v1/logs"]) { _ in ["code": 3]
        },
    ]

    /// A 400 is sent again unless a field is missing, and then only the field is printed.
    private static let amplitude: @Sendable (_ sentence: String) -> JSONObject = {
        ["code": 400, "error": .string($0), "missing_field": .string($0)]
    }

    private static let customerIO: @Sendable (_ sentence: String) -> JSONObject = {
        ["meta": ["error": .string($0)]]
    }

    /// Endpoints that refuse. They are in no document: nobody should use them.
    package static var endpoints: [Endpoint] {
        all.flatMap { other in
            other.paths.map { path in
                Endpoint(method: other.method, path: path) { request, _ in .answer(other.refusal(request)) }
            }
        }
    }

    private func refusal(_ request: HTTPRequest) -> HTTPResponse {
        let sentence = "the \(name) protocol is not supported; send events to POST /v1/batch"
        var response = HTTPResponse.failure(
            400, code: "unsupported_protocol", reason: sentence, requestID: request.id)
        var body: JSONObject = [
            "success": false, "code": "unsupported_protocol", "reason": .string(sentence),
            "message": .string(sentence), "request_id": .string(request.id),
        ]
        body.merge(members(sentence)) { _, own in own }
        response.body = []
        JSONValue.object(body).write(to: &response.body)
        return response
    }
}
