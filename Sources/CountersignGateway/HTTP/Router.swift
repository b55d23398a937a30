/// One thing that a client can ask for.
struct Endpoint: Sendable {
    let method: String
    /// A path such as `/v1/batch`; a part in braces stands for any one segment.
    let path: String
    /// Answers the request; the second argument holds what stood for the parts in braces, in their order.
    let handle: @Sendable (HTTPRequest, [Substring]) -> HTTPOutcome
}

/// Finds the endpoint of a request in the tables of all dialects.
struct Router: Sendable {
    private let exact: [String: [Endpoint]]
    private let templates: [(segments: [Substring], endpoint: Endpoint)]

    init(_ endpoints: [Endpoint]) {
        exact = Dictionary(grouping: endpoints.filter { !$0.path.contains("{") }, by: \.path)
        templates = endpoints.filter { $0.path.contains("{") }.map { ($0.path.split(separator: "/"), $0) }
    }

    func route(_ request: HTTPRequest) -> HTTPOutcome {
        var allowed: [String] = []
        for endpoint in exact[request.path] ?? [] {
            if endpoint.method == request.method { return Self.handle(request, endpoint, []) }
            allowed.append(endpoint.method)
        }
        let segments = request.path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (template, endpoint) in templates where template.count == segments.count {
            guard let parameters = Self.match(template, segments) else { continue }
            if endpoint.method == request.method { return Self.handle(request, endpoint, parameters) }
            allowed.append(endpoint.method)
        }
        if allowed.isEmpty {
            return .answer(
                .failure(
                    404, code: "not_found",
                    reason: "there is no such endpoint; the documents list those there are",
                    requestID: request.id))
        }
        let methods = Set(allowed).sorted().joined(separator: ", ")
        return .answer(
            HTTPResponse.failure(
                405, code: "method_not_allowed", reason: "this endpoint takes \(methods)",
                requestID: request.id
            ).with("Allow", methods))
    }

    private static func handle(
        _ request: HTTPRequest, _ endpoint: Endpoint, _ parameters: [Substring]
    ) -> HTTPOutcome {
        request.trail.route = endpoint.path
        return endpoint.handle(request, parameters)
    }

    private static func match(_ template: [Substring], _ segments: ArraySlice<Substring>) -> [Substring]? {
        var parameters: [Substring] = []
        for (part, segment) in zip(template, segments) {
            if part.first == "{" {
                guard !segment.isEmpty else { return nil }
                parameters.append(segment)
            } else if part != segment {
                return nil
            }
        }
        return parameters
    }
}
