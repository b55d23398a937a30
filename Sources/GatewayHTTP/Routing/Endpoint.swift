/// One thing that a client can ask for.
package struct Endpoint: Sendable {
    let method: String
    /// A path such as `/v1/batch`. A part in braces matches any one segment that is not empty.
    let path: String
    /// What `/openapi.json` says of it; nil leaves it out.
    var operation: APIOperation?
    /// Whether pages of an app's allowed origins may call the endpoint (``CORS``).
    private(set) var isForPages = false
    /// Answers the request; the second argument holds what stood for the parts in braces, in their order.
    let handle: @Sendable (HTTPRequest, [Substring]) -> HTTPOutcome

    package init(
        method: String, path: String, handle: @escaping @Sendable (HTTPRequest, [Substring]) -> HTTPOutcome
    ) {
        self.method = method
        self.path = path
        self.handle = handle
    }

    /// The same endpoint, callable by pages of an app's allowed origins. Use only for endpoints that apps call.
    package var forPages: Endpoint {
        var copy = self
        copy.isForPages = true
        return copy
    }

    /// The same endpoint, described.
    package func described(_ operation: APIOperation) -> Endpoint {
        var copy = self
        copy.operation = operation
        return copy
    }
}
