internal import Foundation

/// A server's whole answer.
public struct TransportResponse: Sendable {
    /// The status code (RFC 9110, section 15).
    public let status: Int
    /// Header fields in the order in which they came.
    public let headers: [(name: String, value: String)]
    /// The body; empty if there was none.
    public let body: [UInt8]

    /// Makes an answer.
    public init(status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The value of the first header field of this name, in any case; nil if there is none.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.caseInsensitiveCompare(name) == .orderedSame }?.value
    }
}
