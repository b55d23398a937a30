package import CountersignCore
internal import GatewayModel

/// The web pages that may call an app (WHATWG Fetch, section 3.3). An app allows none by default.
///
/// Only endpoints with ``Endpoint/forPages`` send CORS headers, also when they reject a request. Pages of
/// other origins cannot read the responses of any other endpoint.
package struct CORS: Sendable {
    /// Origins by app id; `*` is every origin.
    let origins: @Sendable (_ appID: String) -> BytewiseSet
    /// The origins allowed by any app: a preflight request does not name its app.
    let originsOfAllApps: @Sendable () -> BytewiseSet

    /// The methods that pages may use on a path; empty if pages may not call it.
    let methods: @Sendable (_ path: String) -> [String]
    private let allowedHeaders: String

    package init(
        requestHeaders: [String],
        methods: @escaping @Sendable (_ path: String) -> [String],
        origins: @escaping @Sendable (_ appID: String) -> BytewiseSet,
        originsOfAllApps: @escaping @Sendable () -> BytewiseSet
    ) {
        self.methods = methods
        self.origins = origins
        self.originsOfAllApps = originsOfAllApps
        allowedHeaders = BytewiseSet(Self.headersOfEveryRequest + requestHeaders).sorted()
            .joined(separator: ", ")
    }

    private static let headersOfEveryRequest = [
        "Authorization", "Content-Encoding", "Content-Type", "X-Request-Id", "X-Requested-With",
        "traceparent",
    ]
    private static let exposedHeaders =
        "RateLimit, RateLimit-Policy, Retry-After, X-Request-Id, traceresponse"

    /// 204 or 403 (the origin is not allowed) for a preflight request of a path that pages may call; otherwise nil.
    func preflight(_ request: HTTPRequest) -> HTTPResponse? {
        guard request.method == "OPTIONS", let origin = request.header("origin"),
            request.header("access-control-request-method") != nil
        else { return nil }
        let methods = methods(request.path)
        if methods.isEmpty { return nil }
        guard let allowed = Self.match(origin, originsOfAllApps()) else {
            return request.failure(
                403, "origin_not_allowed", "no app allows this origin; add it to the origins of the app"
            ).with("Vary", "Origin")
        }
        return HTTPResponse(
            status: 204,
            headers: [
                ("Access-Control-Allow-Origin", allowed), ("Vary", "Origin"),
                ("Access-Control-Allow-Methods", methods.joined(separator: ", ")),
                ("Access-Control-Allow-Headers", allowedHeaders),
                ("Access-Control-Max-Age", "7200"),
            ], body: [])
    }

    /// Adds CORS headers to the response if pages may call the path and the app allows the page's origin.
    func decorated(_ outcome: consuming HTTPOutcome, for request: HTTPRequest) -> HTTPOutcome {
        guard let origin = request.header("origin"), !methods(request.path).isEmpty else { return outcome }
        switch outcome {
        case .answer(let response): return .answer(decorated(response, request, origin))
        case .later(let start, let poll):
            return .later(start: start, poll: { poll().map { decorated($0, request, origin) } })
        }
    }

    private func decorated(_ response: HTTPResponse, _ request: HTTPRequest, _ origin: String) -> HTTPResponse
    {
        let origins = request.context.appID.map { self.origins($0) } ?? originsOfAllApps()
        guard let allowed = Self.match(origin, origins) else { return response.with("Vary", "Origin") }
        return response.with("Access-Control-Allow-Origin", allowed).with("Vary", "Origin")
            .with("Access-Control-Expose-Headers", Self.exposedHeaders)
    }

    private static func match(_ origin: String, _ origins: BytewiseSet) -> String? {
        if origins.contains(origin) { return origin }
        return origins.contains("*") ? "*" : nil
    }
}
