/// An answer.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// The stable word of a failure, for the log; nil otherwise.
    package var code: String?
    /// True when many answers share the bytes of the body, which cost no memory of this one's.
    package var isShared = false
    /// True when its request has changed nothing, so that it may be refused for want of memory; so may those of safe
    /// methods.
    package var changesNothing = false
    /// True when the connection must not be used again.
    package var closes = false
    /// What is sent instead of the body, as it comes; nil for an answer that is whole.
    package var stream: ResponseStream?

    package init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// A JSON answer, on a line of its own: a terminal goes on below it.
    package static func json(_ status: Int, _ body: consuming [UInt8]) -> HTTPResponse {
        body.append(UInt8(ascii: "\n"))
        return HTTPResponse(status: status, headers: [("Content-Type", "application/json")], body: body)
    }

    /// A text answer.
    package static func text(_ status: Int, _ text: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    }

    /// The same answer with one more header field.
    package func with(_ name: String, _ value: String) -> HTTPResponse {
        var copy = self
        copy.headers.append((name, value))
        return copy
    }
}
