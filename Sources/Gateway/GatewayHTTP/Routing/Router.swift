internal import CountersignCore
internal import GatewayModel

package struct Router: Sendable {
    private let exact: BytewiseDictionary<[Endpoint]>
    private let templates: [Template]
    private let refusals: [Refusal]

    /// A dialect's format of errors for unknown paths and methods and for malformed paths.
    package struct Refusal: Sendable {
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

    package init(_ endpoints: [Endpoint], refusals: [Refusal] = []) {
        self.refusals = refusals
        exact = BytewiseDictionary(grouping: endpoints.filter { !$0.path.contains("{") }, by: \.path)
        templates = endpoints.filter { $0.path.contains("{") }.map { Template($0) }
    }

    /// An endpoint whose path has parameters.
    private struct Template {
        let endpoint: Endpoint
        private let segments: [Substring]

        init(_ endpoint: Endpoint) {
            self.endpoint = endpoint
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

    /// The endpoints of a path without parts that vary. One slash too many at the end means the same, since some
    /// clients write it.
    private func exactly(_ path: String) -> [Endpoint] {
        if let endpoints = exact[path] { return endpoints }
        guard path.utf8.last == UInt8(ascii: "/") else { return [] }
        return exact[String(path.dropLast())] ?? []
    }

    private func endpoints(of path: String) -> [Endpoint] {
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        return exactly(path)
            + templates.filter { template in
                if case .some = template.match(segments) { true } else { false }
            }.map(\.endpoint)
    }

    /// The methods that pages of an app's allowed origins may use on a path; empty if they may not call it.
    package func methodsForPages(of path: String) -> [String] {
        endpoints(of: path).filter(\.isForPages).map(\.method).sorted()
    }

    /// The methods of a path; empty if the path is unknown.
    func methods(of path: String) -> [String] {
        let methods = BytewiseSet(endpoints(of: path).map(\.method))
        return (methods.contains("GET") ? methods.union(["HEAD"]) : methods).sorted()
    }

    package func route(_ request: HTTPRequest) -> HTTPOutcome {
        if let fault = RequestTarget.fault(ofPath: request.path) {
            var response = refusal(400, "invalid_target", fault, request)
            response.closes = true
            return .answer(response)
        }
        // HEAD is GET without a body; the server omits the body (RFC 9110, section 9.3.2).
        let method = request.method == "HEAD" ? "GET" : request.method
        for endpoint in exactly(request.path) where endpoint.method == method {
            return Self.handle(request, endpoint, [])
        }
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for template in templates where template.endpoint.method == method {
            guard let parameters = template.match(segments) else { continue }
            return Self.handle(request, template.endpoint, parameters)
        }
        // RFC 9110, section 9.3.7: `OPTIONS *` is about the whole server.
        if request.path == "*" {
            return .answer(
                HTTPResponse(
                    status: 204, headers: [("Allow", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")],
                    body: []))
        }
        let allowed = methods(of: request.path)
        if allowed.isEmpty {
            return .answer(
                refusal(
                    404, "not_found", "there is no such endpoint; see /openapi.json", request
                ))
        }
        let methods = allowed.joined(separator: ", ")
        return .answer(
            refusal(405, "method_not_allowed", "this endpoint takes \(methods)", request).with(
                "Allow", methods))
    }

    private func refusal(
        _ status: Int, _ code: String, _ reason: String, _ request: HTTPRequest
    ) -> HTTPResponse {
        let own = refusals.first { $0.prefixes.contains { request.path.hasPrefix($0) } }
        return own?.make(status, code, reason, request)
            ?? .failure(status, code: code, reason: reason, requestID: request.id)
    }

    private static func handle(
        _ request: HTTPRequest, _ endpoint: Endpoint, _ parameters: [Substring]
    ) -> HTTPOutcome {
        request.context.route = endpoint.path
        return endpoint.handle(request, parameters)
    }
}
