/// A response. Thrown to reject a request.
package struct HTTPResponse: Error {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// The stable code of a failure, for the log; otherwise nil.
    package var code: String?
    /// Whether many responses share the body. Such a body is not counted in ``BodyMemory``.
    package var isShared = false
    /// Whether a 503 may replace the response if there is no memory for it. Responses to safe methods allow it anyway.
    package var changesNothing = false
    package var closes = false
    package var stream: ResponseStream?

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A JSON response, terminated by a newline for readers in a terminal.
    package static func json(_ status: Int, _ body: consuming [UInt8]) -> HTTPResponse {
        body.append(UInt8(ascii: "\n"))
        return HTTPResponse(status: status, headers: [("Content-Type", "application/json")], body: body)
    }

    package static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }

    package func with(_ name: String, _ value: String) -> HTTPResponse {
        var copy = self
        copy.headers.append((name, value))
        return copy
    }
}
