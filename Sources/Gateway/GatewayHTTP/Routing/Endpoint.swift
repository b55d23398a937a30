package struct Endpoint: Sendable {
    let method: String
    /// A path such as `/v1/batch`. A part in braces matches any one non-empty segment.
    let path: String
    /// The description in `/openapi.json`; nil omits the endpoint.
    var operation: APIOperation?
    /// Whether pages of an app's allowed origins may call the endpoint (``CORS``).
    private(set) var isForPages = false
    /// Handles the request. The second argument has the values of the parts in braces, in order.
    let handle: @Sendable (HTTPRequest, [Substring]) -> HTTPOutcome

    package init(
        method: String, path: String, handle: @escaping @Sendable (HTTPRequest, [Substring]) -> HTTPOutcome
    ) {
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
