internal import CountersignCore
package import GatewayHTTP

/// The parameters of a token request: `application/x-www-form-urlencoded` in the body (RFC 6749, appendix B).
package struct OAuthForm {
    static let maximumBytes = 64 * 1024
    static let maximumParameters = 64
    private static let longestName = 128

    private let values: BytewiseDictionary<String>

    /// Ignores the query, because servers and proxies may log it (section 2.3.1). Throws `invalid_request`.
    package init(_ request: HTTPRequest) throws(OAuthError) {
        let type = request.header("content-type")?.split(separator: ";").first.map {
            String($0.unicodeScalars.filter { $0 != " " }).lowercased()
        }
        guard type == "application/x-www-form-urlencoded" else {
            throw OAuthError(
                .invalidRequest, "send the parameters with Content-Type: application/x-www-form-urlencoded")
        }
        try self.init(body: request.body)
    }

    /// Parses `multipart/form-data`, as sent by `curl -F`. RFC 6749 does not define this format, so use it only
    /// for endpoints outside of that RFC. Throws `invalid_request`.
    package init(multipart request: HTTPRequest) throws(OAuthError) {
        guard request.body.count <= Self.maximumBytes else {
            throw OAuthError(.invalidRequest, "the body may have at most \(Self.maximumBytes) bytes")
        }
        guard let form = MultipartForm(request) else {
            throw OAuthError(
                .invalidRequest,
                "the body is not multipart/form-data with up to \(MultipartForm.maximumFields) fields that each "
                    + "appear once, and no files")
        }
        var values: BytewiseDictionary<String> = [:]
        for (name, bytes) in form.fields where !bytes.isEmpty {
            guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                let value = String(validating: bytes, as: UTF8.self)
            else {
                throw OAuthError(.invalidRequest, "a parameter must be UTF-8 without control characters")
            }
            values[name] = value
        }
        self.values = values
    }

    init(body: [UInt8]) throws(OAuthError) {
        guard body.count <= Self.maximumBytes else {
            throw OAuthError(.invalidRequest, "the body may have at most \(Self.maximumBytes) bytes")
        }
        var values: BytewiseDictionary<String> = [:]
        let pairs = body.split(
            separator: UInt8(ascii: "&"), maxSplits: Self.maximumParameters, omittingEmptySubsequences: true)
        guard pairs.count <= Self.maximumParameters else {
            throw OAuthError(
                .invalidRequest, "a request may have at most \(Self.maximumParameters) parameters")
        }
        for pair in pairs {
            let parts = pair.split(
                separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decode(parts[0]), let value = Self.decode(parts.count > 1 ? parts[1] : [])
            else {
                throw OAuthError(
                    .invalidRequest, "a parameter must be percent-encoded UTF-8 without control characters")
            }
            guard name.utf8.count <= Self.longestName else {
                throw OAuthError(
                    .invalidRequest, "the name of a parameter may have at most \(Self.longestName) bytes")
            }
            // Ignores a name that is not ASCII, as unknown parameters are ignored (section 3.2).
            guard name.utf8.allSatisfy({ $0 < 0x80 }) else { continue }
            guard values.updateValue(value, forKey: name) == nil else {
                throw OAuthError(.invalidRequest, "a parameter appears more than once")
            }
        }
        // A parameter without a value is treated as omitted (section 3.2).
        self.values = values.filter { !$0.value.isEmpty }
    }

    /// The value of a parameter; nil if it is missing or not ASCII (appendix A).
    package subscript(name: String) -> String? {
        values[name].flatMap { $0.utf8.allSatisfy { $0 < 0x80 } ? $0 : nil }
    }

    /// Decodes a name or a value; nil if it is malformed or has a control character.
    static func decode(_ text: ArraySlice<UInt8>) -> String? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var rest = text
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(\.hexadecimalValue),
                    let low = rest.popFirst().flatMap(\.hexadecimalValue)
                else { return nil }
                bytes.append(high << 4 | low)
            default: bytes.append(byte)
            }
        }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
