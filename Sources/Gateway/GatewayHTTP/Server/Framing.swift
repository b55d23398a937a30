internal import CHTTPServer
internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// Checks of the request that the HTTP library does not make (RFC 9112, sections 5.1, 6.1 and 6.3; RFC 9110,
/// section 5.5).
///
/// A request whose end is ambiguous may smuggle a second one, so it is rejected and its connection closed.
enum Framing {
    /// Returns the rejection of an invalid request; otherwise nil.
    static func fault(
        method: String, target: RequestTarget, version: String, fields: [HTTPField], limits: GatewayLimits,
        singleFields: SingleFields
    ) -> HTTPResponse? {
        if fields.count > limits.headerFields {
            return refusal(431, "too_many_headers", "more than \(limits.headerFields) header fields")
        }
        // The HTTP library accepts more than the limit, so that a request slightly over it still gets a
        // complete response.
        let bytes = fields.reduce(method.utf8.count + target.count + " HTTP/1.1\r\n".utf8.count + 1) {
            $0 + $1.nameBytes.count + $1.valueBytes.count + ": \r\n".utf8.count
        }
        if bytes > limits.headerBytes {
            return refusal(
                431, "header_too_large", "the header has more than \(limits.headerBytes) bytes")
        }
        let isTokenByte = isTokenByte
        guard method.utf8.allSatisfy({ isTokenByte[Int($0)] }), !method.isEmpty else {
            return refusal(400, "invalid_framing", "the method contains invalid characters")
        }
        // RFC 9110, sections 9.3.6 and 9.3.7: no tunnels, and `*` only with OPTIONS.
        guard method != "CONNECT" else {
            return refusal(501, "invalid_target", "the gateway is not a proxy: it does not open tunnels")
        }
        if let fault = target.fault { return refusal(400, "invalid_target", fault) }
        if target.path == "*", method != "OPTIONS" || target.query != nil {
            return refusal(400, "invalid_target", "the target * is for OPTIONS only")
        }
        if let name = singleFields.repeated(in: fields) {
            return refusal(
                400, "duplicate_field",
                "more than one \(name) field: send only one")
        }
        var host = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
        var hosts = 0
        var lengths = 0
        var codings = 0
        for field in fields {
            guard !field.nameBytes.isEmpty, field.nameBytes.allSatisfy({ isTokenByte[Int($0)] }) else {
                return refusal(
                    400, "invalid_framing", "a header field's name contains invalid characters")
            }
            guard !hasControlCharacter(field.valueBytes) else {
                return refusal(400, "invalid_framing", "a header field contains a control character")
            }
            if field.isNamed("host") {
                hosts += 1
                host = field.valueBytes
            }
            if field.isNamed("content-length") {
                lengths += 1
                guard !field.valueBytes.isEmpty,
                    field.valueBytes.allSatisfy(\.isASCIIDigit)
                else {
                    return refusal(400, "invalid_framing", "Content-Length is not a number")
                }
            }
            if field.isNamed("transfer-encoding") {
                codings += 1
                guard field.value.lowercased() == "chunked" else {
                    return refusal(
                        501, "invalid_framing", "the only supported transfer coding is chunked")
                }
            }
        }
        if hosts != 1 { return refusal(400, "invalid_framing", "a request must have one Host field") }
        guard isHost(host) else {
            return refusal(400, "invalid_host", "Host is not a name or address with or without a port")
        }
        // RFC 9112, section 3.2.2, gives the target precedence. Two different hosts are rejected
        // nevertheless, because one must be wrong.
        if let authority = target.authority, authority != HTTPField.text(host).lowercased() {
            return refusal(400, "invalid_host", "Host and the target of the request name different hosts")
        }
        if codings > 0, version == "HTTP/1.0" {
            return refusal(400, "invalid_framing", "Transfer-Encoding in a request of HTTP/1.0")
        }
        if lengths > 1 { return refusal(400, "invalid_framing", "more than one Content-Length") }
        if codings > 1 { return refusal(400, "invalid_framing", "more than one Transfer-Encoding") }
        if lengths + codings > 1 {
            return refusal(400, "invalid_framing", "both Content-Length and Transfer-Encoding")
        }
        return nil
    }

    /// Returns the rejection of malformed trailer fields; otherwise nil. Their values are not used.
    static func fault(inTrailers fields: [HTTPField]) -> HTTPResponse? {
        let isSound = fields.allSatisfy {
            !$0.nameBytes.isEmpty && $0.nameBytes.allSatisfy { isTokenByte[Int($0)] }
                && !hasControlCharacter($0.valueBytes)
        }
        return isSound ? nil : refusal(400, "invalid_framing", "a trailer field is malformed")
    }

    /// Whether a body consists of many nearly empty chunks. Parsing them is nearly all the work of such a
    /// request, and it blocks the thread that serves other clients.
    static func isCrumbled(chunks: Int, bytes: Int) -> Bool {
        chunks > 500 && bytes < 32 * chunks
    }

    /// Whether the text is `uri-host [ ":" port ]` (RFC 9110, section 7.2). Registered names must not be
    /// percent-encoded.
    static func isHost(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        var rest = text[...]
        if rest.first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let inner = HTTPField.text(UnsafeBufferPointer(rebasing: rest[(rest.startIndex + 1)..<end]))
            guard inner.contains(":"), NetworkAddress(inner) != nil else { return false }
            rest = rest[(end + 1)...]
        } else {
            let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            let isNameByte = isNameByte
            guard end != rest.startIndex, rest[..<end].allSatisfy({ isNameByte[Int($0)] })
            else { return false }
            rest = rest[end...]
        }
        guard let colon = rest.first else { return true }
        let port = rest.dropFirst()
        return colon == UInt8(ascii: ":") && port.count <= 5
            && port.allSatisfy(\.isASCIIDigit)
            && port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= UInt16.max
    }

    /// Whether this version of the HTTP library ignores NUL, a lone CR and a lone LF in a header.
    static let libraryIsLenient = countersign_mhd_is_lenient() != 0

    /// The response to a header with bytes that belong to no field.
    static let swallowed = refusal(
        400, "invalid_framing", "the header contains NUL, or a CR or LF that is not part of a line ending")

    /// Method, target, target length and version, as pointers into the library's memory.
    typealias RequestLine = (
        method: UnsafePointer<CChar>, target: UnsafePointer<UInt8>?, count: Int, version: UnsafePointer<CChar>
    )

    /// Whether the header has no bytes that the library skipped: one space between the parts of the request
    /// line, CR LF between fields, and four bytes after the last field.
    static func isWhole(_ fields: [HTTPField], after line: RequestLine, count: Int) -> Bool {
        let start = line.method
        guard let target = line.target,
            UnsafeRawPointer(target) == UnsafeRawPointer(start) + strlen(start) + 1,
            UnsafeRawPointer(line.version) == UnsafeRawPointer(target) + line.count + 1
        else { return false }
        let lineEnd = UnsafeRawPointer(line.version) + strlen(line.version)
        var end: UnsafePointer<UInt8>? = lineEnd.assumingMemoryBound(to: UInt8.self)
        for field in fields {
            guard let name = field.nameBytes.baseAddress, let value = field.valueBytes.baseAddress else {
                return false
            }
            if let end, name != end + 2 { return false }
            end = value + field.valueBytes.count
        }
        guard let end else { return false }
        return UnsafeRawPointer(end) + 4 == UnsafeRawPointer(start) + count
    }

    private static func refusal(_ status: Int, _ code: String, _ reason: String) -> HTTPResponse {
        var response = HTTPResponse.failure(status, code: code, reason: reason, requestID: nil)
        response.closes = true
        return response
    }

    /// Indexed by byte (RFC 9110, section 5.6.2).
    private static let isTokenByte: [Bool] = {
        let marks = Set("!#$%&'*+-.^_`|~".utf8)
        return (0...UInt8.max).map { byte in
            let character = Character(Unicode.Scalar(byte))
            return character.isASCII && (character.isLetter || character.isNumber) || marks.contains(byte)
        }
    }()

    /// Indexed by byte: the characters of a registered name, without percent-encoding (RFC 3986, section
    /// 3.2.2).
    private static let isNameByte: [Bool] = (0...UInt8.max).map { $0.isASCIIAlphanumeric(or: "-._") }

    /// Checks eight bytes at a time, because tokens have hundreds of bytes.
    private static func hasControlCharacter(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let all = UnsafeRawBufferPointer(bytes)
        var start = 0
        while start + 8 <= all.count {
            let word = all.loadUnaligned(fromByteOffset: start, as: UInt64.self)
            let delete = word ^ (0x7F * Self.eachByte)
            // The highest bit of a byte is set if the byte is below 0x20 or is 0x7F. That includes tabs,
            // which are allowed.
            let low = (word &- (0x20 * Self.eachByte)) & ~word
            let isDelete = (delete &- Self.eachByte) & ~delete
            if (low | isDelete) & Self.highestBits != 0 { break }
            start += 8
        }
        return bytes[start...].contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
    }

    private static let eachByte: UInt64 = 0x0101_0101_0101_0101
    private static let highestBits: UInt64 = 0x8080_8080_8080_8080
}
