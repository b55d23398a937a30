public import Foundation

/// A request of the SDK to an `HTTPTransport`. The description omits header values, because headers contain tokens.
public struct TransportRequest: Sendable, CustomStringConvertible {
    /// The method (RFC 9110, section 9), such as `POST`.
    public let method: String
    /// The URL, with `http` or `https`.
    public let url: URL
    /// Header fields in order. Names and values are ASCII without line breaks.
    public let headers: [(name: String, value: String)]
    /// The body; empty for a request without content.
    public let body: [UInt8]
    /// The time limit of the whole exchange in seconds, including the connection.
    public let timeout: TimeInterval
    /// The maximum bytes of a response's body. A longer body is truncated (`TransportResponse.isTruncated`).
    public let maximumResponseBytes: Int
    /// Whether the SDK's own transports may compress the body with gzip.
    package var isCompressible = false

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - url: The URL.
    ///   - headers: Header fields in order.
    ///   - body: The body.
    ///   - timeout: Seconds for the whole exchange.
    ///   - maximumResponseBytes: The maximum bytes of the response's body.
    public init(
        method: String = "POST", url: URL, headers: [(name: String, value: String)], body: [UInt8],
        timeout: TimeInterval = 30, maximumResponseBytes: Int = 1_048_576
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
        self.maximumResponseBytes = maximumResponseBytes
    }

    /// The value of the first header field with this name, ignoring case; nil without such a field.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.caseInsensitiveCompare(name) == .orderedSame }?.value
    }

    /// Replaces other header fields of this name, and the body if `newBody` is given.
    package func setting(_ name: String, to value: String, body newBody: [UInt8]? = nil) -> TransportRequest {
        let others = headers.filter { $0.name.caseInsensitiveCompare(name) != .orderedSame }
        var request = TransportRequest(
            method: method, url: url, headers: others + [(name, value)], body: newBody ?? body,
            timeout: timeout, maximumResponseBytes: maximumResponseBytes)
        request.isCompressible = isCompressible
        return request
    }

    /// Method, scheme, host, path and the size of the body.
    public var description: String {
        "\(method) \(url.scheme ?? "")://\(url.host ?? "")\(url.path) (\(body.count) bytes)"
    }
}
