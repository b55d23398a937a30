internal import CountersignCore
internal import Foundation

/// A server's response.
public struct TransportResponse: Sendable {
    /// The status code (RFC 9110, section 15).
    public let status: Int
    /// Header fields in the order of the response.
    public let headers: [(name: String, value: String)]
    /// The body; empty if the response has none.
    public let body: [UInt8]
    /// Whether the body exceeds `TransportRequest.maximumResponseBytes`, or has an encoding that could not be
    /// decoded.
    public let isTruncated: Bool

    /// Makes a response.
    public init(
        status: Int, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        isTruncated: Bool = false
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.isTruncated = isTruncated
    }

    /// The value of the first header field with this name, ignoring case; nil without such a field.
    public func header(_ name: String) -> String? {
        headers.first { $0.name.caseInsensitiveCompare(name) == .orderedSame }?.value
    }

    /// Closes a truncated JSON object after its last complete member, so that it can be read.
    package func closingTruncatedObject() -> TransportResponse {
        guard isTruncated else { return self }
        return TransportResponse(
            status: status, headers: headers, body: JSONDocument.closingTruncatedObject(body),
            isTruncated: true)
    }

    /// Replaces the request's token, which some servers repeat in their texts. JSON may escape slashes. Keeps a token
    /// of up to eight characters, which is not a secret and may equal other text.
    package func redacting(_ token: String?) -> TransportResponse {
        guard let token, token.utf8.count > 8 else { return self }
        let text = String(decoding: body, as: UTF8.self)
        let redacted = [token, token.replacingOccurrences(of: "/", with: #"\/"#)].reduce(text) {
            $0.replacingOccurrences(of: $1, with: "(token)")
        }
        guard redacted != text else { return self }
        return TransportResponse(
            status: status, headers: headers, body: Array(redacted.utf8), isTruncated: isTruncated)
    }
}
