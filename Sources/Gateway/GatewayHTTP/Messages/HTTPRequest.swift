internal import CountersignCore
package import GatewayModel

package protocol RequestPeer: AnyObject, Sendable {
    /// Whether the client has closed the connection or its sending half.
    var hasHungUp: Bool { get }
}

package final class HTTPRequest {
    package let method: String
    /// The path as sent, not decoded, without the query.
    package let path: String
    /// The query after `?`, not decoded; nil without `?`.
    package let query: String?
    /// The client's address as text, resolved through trusted proxies; empty when unknown.
    package internal(set) var clientAddress: String
    /// Whether the peer is a trusted proxy, or a header field shows that a proxy forwarded the request.
    package internal(set) var isForwarded = false
    package let receivedMilliseconds: Int64
    package let id: String
    package var body: [UInt8]
    var isGzip = false
    /// Data collected while the request is handled.
    package var context = RequestContext()
    /// The client's connection; nil for a request without a connection.
    package internal(set) var peer: (any RequestPeer)?
    /// Whether to abort when the client half-closes the connection.
    package var endsWithPeer = false

    /// Whether to decompress the body. An empty body is accepted, although it is not a gzip stream.
    var isCompressed: Bool { isGzip && !body.isEmpty }

    /// Whether the method is safe (RFC 9110, section 9.2.1).
    var isSafe: Bool { ["GET", "HEAD", "OPTIONS"].contains(method) }

    /// The header fields. They may point into memory that is valid until the response is sent or the connection closes.
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

    /// A copy with its own header fields, for another thread. The original's fields become invalid with the
    /// connection, which the client may close at any time.
    func detached() -> HTTPRequest { HTTPRequest(detaching: self) }

    private init(detaching request: HTTPRequest) {
        method = request.method
        path = request.path
        query = request.query
        clientAddress = request.clientAddress
        receivedMilliseconds = request.receivedMilliseconds
        id = request.id
        body = request.body
        isGzip = request.isGzip
        context = request.context
        peer = request.peer
        isForwarded = request.isForwarded
        fields = request.fields.copy()
    }

    /// The value of the first field with this lower-case name. Valid as long as the header fields.
    package func headerBytes(_ name: StaticString) -> UnsafeBufferPointer<UInt8>? { fields.first(name) }

    /// Whether a header field shows that a proxy forwarded the request.
    package var namesProxies: Bool {
        headerBytes("x-forwarded-for") != nil || headerBytes("forwarded") != nil
            || headerBytes("via") != nil
    }

    /// Whether the response may be compressed with gzip (RFC 9110, section 12.5.3).
    package var takesGzip: Bool {
        header("accept-encoding")?.lowercased().split(separator: ",").contains {
            let parts = $0.split(separator: ";").map { String($0.unicodeScalars.filter { $0 != " " }) }
            return parts.first == "gzip"
                && !parts.dropFirst().contains {
                    $0.utf8.starts(with: "q=".utf8) && Double($0.dropFirst(2)) == 0
                }
        } == true
    }

    package func header(_ name: StaticString) -> String? {
        headerBytes(name).map { HTTPField.text($0) }
    }

    package func headers(_ name: StaticString) -> [String] {
        fields.all.filter { $0.isNamed(name) }.map(\.value)
    }

    var caller: TraceParent? { header("traceparent").flatMap { TraceParent($0) } }

    /// The trace context for requests that the gateway makes on behalf of this one.
    package var trace: TraceParent? { context.span?.context ?? caller }

    /// Whether an id is safe in a header and a log: 1 to 128 letters, digits, `-`, `_` or `.`.
    private static func isHarmless(_ id: UnsafeBufferPointer<UInt8>) -> Bool {
        (1...128).contains(id.count) && id.allSatisfy { $0.isASCIIAlphanumeric(or: "-_.") }
    }
}
