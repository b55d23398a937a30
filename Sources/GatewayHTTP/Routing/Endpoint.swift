/// One thing that a client can ask for.
package struct Endpoint: Sendable {
    let method: String
    /// A path such as `/v1/batch`; a part in braces stands for any one segment that is not empty.
    let path: String
    /// What `/openapi.json` says of it; nil leaves it out.
    var operation: APIOperation?
    /// Whether pages of an app's origins may call it (``CORS``).
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

    /// The same endpoint, which pages of an app's origins may call too: one that apps call, and no other.
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
