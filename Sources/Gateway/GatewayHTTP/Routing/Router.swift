internal import CountersignCore
internal import GatewayModel

package struct Router: Sendable {
    private let exact: [BytewiseText: [Route]]
    private let templates: [Template]
    /// The number of segments of the longest template.
    private let mostSegments: Int
    private let rejections: [Rejection]

    package struct Rejection: Sendable {
        let prefixes: [String]
        let make: @Sendable (_ status: Int, _ code: String, _ reason: String, HTTPRequest) -> HTTPResponse

        package init(
            prefixes: [String],
            make:
                @escaping @Sendable (_ status: Int, _ code: String, _ reason: String, HTTPRequest) ->
                HTTPResponse
        ) {
            self.prefixes = prefixes
            self.make = make
        }
    }

    package init(_ endpoints: [Endpoint], rejections: [Rejection] = []) {
        self.rejections = rejections
        exact = Dictionary(grouping: endpoints.filter { !$0.path.contains("{") }.map(Route.init)) {
            BytewiseText($0.path)
        }
        templates = endpoints.filter { $0.path.contains("{") }.map { Template($0) }
        mostSegments = templates.map(\.segments.count).max() ?? 0
    }

    /// The members of an endpoint that routing needs. A class, so that a copy retains only one reference.
    private final class Route: Sendable {
        let method: String
        let path: String
        let isForPages: Bool
        let handle: Endpoint.Handler

        init(_ endpoint: Endpoint) {
            method = endpoint.method
            path = endpoint.path
            isForPages = endpoint.isForPages
            handle = endpoint.handle
        }
    }

    private struct Template {
        let route: Route
        let segments: [Substring]

        init(_ endpoint: Endpoint) {
            route = Route(endpoint)
            // Split like requests: a slash at the end is a separate segment.
            segments = Array(
                endpoint.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst())
        }

        func match(_ path: ArraySlice<Substring>) -> [Substring]? {
            guard path.count == segments.count else { return nil }
            var parameters: [Substring] = []
            for (part, segment) in zip(segments, path) {
                if part.hasPrefix("{") {
                    guard !segment.isEmpty else { return nil }
                    parameters.append(segment)
                } else if part != segment {
                    return nil
                }
            }
            return parameters
        }
    }

    /// The endpoints of a path without parameters. Ignores a slash at the end, which some clients add.
    private func exactly(_ path: String) -> [Route] {
        if let routes = exact[BytewiseText(path)] { return routes }
        guard path.utf8.last == UInt8(ascii: "/") else { return [] }
        return exact[BytewiseText(String(path.dropLast()))] ?? []
    }

    /// A longer path than all templates is not split completely.
    private func segments(of path: String) -> ArraySlice<Substring> {
        path.split(separator: "/", maxSplits: mostSegments + 1, omittingEmptySubsequences: false).dropFirst()
    }

    private func routes(of path: String) -> [Route] {
        let segments = segments(of: path)
        return exactly(path)
            + templates.filter { template in
                if case .some = template.match(segments) { true } else { false }
            }.map(\.route)
    }

    package func methodsForPages(of path: String) -> [String] {
        routes(of: path).filter(\.isForPages).map(\.method).sorted()
    }

    func methods(of path: String) -> [String] {
        let methods = BytewiseSet(routes(of: path).map(\.method))
        return (methods.contains("GET") ? methods.union(["HEAD"]) : methods).sorted()
    }

    package func route(_ request: HTTPRequest) -> HTTPOutcome {
        if let fault = RequestTarget.fault(ofPath: request.path) {
            var response = rejection(400, "invalid_target", fault, request)
            response.closes = true
            return .answer(response)
        }
        // HEAD is GET without a body; the server omits the body (RFC 9110, section 9.3.2).
        let method = request.method == "HEAD" ? "GET" : request.method
        for route in exactly(request.path) where route.method == method {
            return Self.handle(request, route, [])
        }
        let segments = segments(of: request.path)
        for template in templates where template.route.method == method {
            guard let parameters = template.match(segments) else { continue }
            return Self.handle(request, template.route, parameters)
        }
        // RFC 9110, section 9.3.7: `OPTIONS *` applies to the whole server.
        if request.path == "*" {
            return .answer(
                HTTPResponse(
                    status: 204, headers: [("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")],
                    body: []))
        }
        let allowed = methods(of: request.path)
        if allowed.isEmpty {
            return .answer(
                rejection(
                    404, "not_found", "there is no such endpoint; see /openapi.json", request
                ))
        }
        let methods = allowed.joined(separator: ", ")
        return .answer(
            rejection(405, "method_not_allowed", "this endpoint takes \(methods)", request).with(
                "Allow", methods))
    }

    private func rejection(
        _ status: Int, _ code: String, _ reason: String, _ request: HTTPRequest
    ) -> HTTPResponse {
        let own = rejections.first { $0.prefixes.contains { request.path.hasPrefix($0) } }
        return own?.make(status, code, reason, request)
            ?? request.failure(status, code, reason)
    }

    private static func handle(
        _ request: HTTPRequest, _ route: Route, _ parameters: [Substring]
    ) -> HTTPOutcome {
        request.context.route = route.path
        do throws(HTTPResponse) {
            return try route.handle(request, parameters)
        } catch {
            return .answer(error)
        }
    }
}
