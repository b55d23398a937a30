package struct Endpoint: Sendable {
    /// Handles a request. The second argument has the values of the path's parts in braces, in order. Throws the
    /// response to a rejected request.
    package typealias Handler = @Sendable (HTTPRequest, [Substring]) throws(HTTPResponse) -> HTTPOutcome

    let method: String
    /// A path such as `/v1/batch`. A part in braces matches any one non-empty segment.
    let path: String
    /// The description in `/openapi.json`; nil omits the endpoint.
    var operation: APIOperation?
    /// Whether pages of an app's allowed origins may call the endpoint (``CORS``).
    private(set) var isForPages = false
    let handle: Handler

    package init(method: String, path: String, handle: @escaping Handler) {
        self.method = method
        self.path = path
        self.handle = handle
    }

    /// A copy that pages of an app's allowed origins may call. Use only for endpoints that apps call.
    package var forPages: Endpoint {
        var copy = self
        copy.isForPages = true
        return copy
    }

    package func described(_ operation: APIOperation) -> Endpoint {
        var copy = self
        copy.operation = operation
        return copy
    }
}
