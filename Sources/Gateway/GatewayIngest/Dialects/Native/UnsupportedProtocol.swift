internal import CountersignCore
package import GatewayHTTP

/// Endpoints of other products whose clients are configured for this gateway by mistake. Each answers 400 with a
/// sentence in the members that those clients print.
package enum UnsupportedProtocol {
    private static let paths: [(product: String, method: String, paths: [String])] = [
        (
            "PostHog", "POST",
            ["/batch/", "/capture", "/i/v0/e", "/i/v0/ai/batch", "/e", "/s", "/decide", "/flags"]
        ),
        ("Amplitude", "POST", ["/2/httpapi", "/httpapi", "/identify", "/groupidentify"]),
        ("Amplitude or PostHog", "POST", ["/batch"]),
        ("Mixpanel", "POST", ["/track", "/engage", "/groups", "/import"]),
        ("Snowplow", "POST", ["/com.snowplowanalytics.snowplow/tp2", "/com.snowplowanalytics.iglu/v1"]),
        (
            "Sentry", "POST",
            ["envelope", "envelope/", "store", "store/"].map { "/api/{project}/" + $0 }
        ),
        ("Customer.io", "PUT", ["/api/v1/customers/{customer}"]),
        (
            "Customer.io", "POST",
            ["/api/v1/customers/{customer}/events", "/api/v1/events", "/api/v2/entity", "/api/v2/batch"]
        ),
        ("Google Analytics", "POST", ["/mp/collect", "/g/collect"]),
        ("OTLP", "POST", ["/v1/traces", "/v1/metrics", "/v1/logs"]),
    ]

    /// The endpoints. They are not in the OpenAPI document.
    package static var endpoints: [Endpoint] {
        paths.flatMap { product, method, paths in
            paths.map { path in
                Endpoint(method: method, path: path) { request, _ in .answer(rejection(of: product, request))
                }
            }
        }
    }

    private static func rejection(of product: String, _ request: HTTPRequest) -> HTTPResponse {
        let sentence = "the \(product) protocol is not supported; send events to POST /v1/batch"
        var response = request.failure(400, "unsupported_protocol", sentence)
        // Amplitude's clients repeat a 400 that has no `missing_field`, or whose `code` is not a number.
        // Mixpanel's clients report an error without a text if there is no `status`. A `status` of 1 means success.
        let body: JSONObject = [
            "success": false, "status": 0, "code": 400, "reason": .string(sentence),
            "message": .string(sentence), "error": .string(sentence), "detail": .string(sentence),
            "missing_field": .string(sentence), "meta": ["error": .string(sentence)],
            "request_id": .string(request.id),
        ]
        response.body = JSONValue.object(body).bytes
        return response
    }
}
