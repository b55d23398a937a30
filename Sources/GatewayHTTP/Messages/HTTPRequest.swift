internal import CountersignCore
package import GatewayModel

/// Whoever waits for an answer, at the other end of a connection.
package protocol RequestPeer: AnyObject, Sendable {
    /// True when it has closed the connection, or its half of it.
    var hasHungUp: Bool { get }
}

/// One request, read completely.
package final class HTTPRequest {
    /// The method as sent, such as `POST`.
    package let method: String
    /// The path as sent, not decoded, without the query.
    package let path: String
    /// What followed `?`, not decoded; nil when there was none.
    package let query: String?
    /// The client's address as text, as far as it can be believed; empty when unknown.
    package internal(set) var clientAddress: String
    /// True when a proxy passed the request on, so that its peer's address says nothing about whose it is.
    package internal(set) var isForwarded = false
    /// Milliseconds since 1970 when the header was complete.
    package let receivedMilliseconds: Int64
    /// What the answer and the log call this request.
    package let id: String
    /// The body, decompressed.
    package internal(set) var body: [UInt8]
    /// True while the body is still compressed, as it was sent.
    var isCompressed = false
    /// What is learnt of it on the way.
    package var context = RequestContext()
    /// Reads the body as fields of a form, for as long as the request is in the hands of its connection; nil where it is not.
    package var readMultipartForm: (() -> MultipartForm?)?
    /// Who sent it; nil for a request without a connection.
    package internal(set) var peer: (any RequestPeer)?
    /// True when nothing is to be done for who has hung up, not even for one who may still read the answer.
    package var endsWithPeer = false

    /// True when its method changes nothing (RFC 9110, section 9.2.1).
    var isSafe: Bool { ["GET", "HEAD", "OPTIONS"].contains(method) }

    /// The header fields, which may be the server's memory until the answer is sent.
    let fields: HeaderBlock

    package init(
        method: String, path: String, query: String? = nil, fields: HeaderBlock = HeaderBlock([]),
        clientAddress: String = "", receivedMilliseconds: Int64, body: [UInt8] = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.clientAddress = clientAddress
        self.receivedMilliseconds = receivedMilliseconds
        self.body = body
        let given = fields.first("x-request-id").flatMap { Self.isHarmless($0) ? HTTPField.text($0) : nil }
        self.id = given ?? UUIDv7.make()
    }

    /// The same request with header fields of its own, to be handled on another thread: those of this one go with its
    /// connection, which the client may close meanwhile.
    func detached() -> HTTPRequest { HTTPRequest(detaching: self) }

    private init(detaching request: HTTPRequest) {
        method = request.method
        path = request.path
        query = request.query
        clientAddress = request.clientAddress
        receivedMilliseconds = request.receivedMilliseconds
        id = request.id
        body = request.body
        isCompressed = request.isCompressed
        context = request.context
        peer = request.peer
        isForwarded = request.isForwarded
        fields = request.fields.copy()
    }

    /// The bytes of the first field with this lower-case name, or nil; valid until the answer is sent.
    package func headerBytes(_ name: StaticString) -> UnsafeBufferPointer<UInt8>? { fields.first(name) }

    /// True when a proxy has left its mark.
    package var namesProxies: Bool {
        headerBytes("x-forwarded-for") != nil || headerBytes("forwarded") != nil
            || headerBytes("via") != nil
    }

    /// Whether the answer may be compressed with gzip (RFC 9110, section 12.5.3).
    package var takesGzip: Bool {
        header("accept-encoding")?.lowercased().split(separator: ",").contains {
            let parts = $0.split(separator: ";").map { String($0.unicodeScalars.filter { $0 != " " }) }
            return parts.first == "gzip" && !parts.dropFirst().contains("q=0")
        } == true
    }

    /// The value of the first field with this lower-case name, or nil.
    package func header(_ name: StaticString) -> String? {
        headerBytes(name).map { HTTPField.text($0) }
    }

    /// The values of all fields with this lower-case name, in their order.
    package func headers(_ name: StaticString) -> [String] {
        fields.all.filter { $0.isNamed(name) }.map(\.value)
    }

    /// The trace that the client says it belongs to, with the client's span.
    var caller: TraceParent? { header("traceparent").flatMap { TraceParent($0) } }

    /// The trace that requests belong to which are made for this one, with the span that they are made by.
    package var trace: TraceParent? { context.span?.context ?? caller }

    /// An id that may go back out in a header and into a log: 1 to 128 letters, digits, `-`, `_`, `.`.
    private static func isHarmless(_ id: UnsafeBufferPointer<UInt8>) -> Bool {
        (1...128).contains(id.count) && id.allSatisfy { $0.isASCIIAlphanumeric(or: "-_.") }
    }
}
