internal import CHTTPServer
internal import CountersignCore

/// What the HTTP library lets through and we do not (RFC 9112, sections 5.1, 6.1 and 6.3; RFC 9110, section 5.5).
///
/// A request whose end is in doubt may hide a second one behind it, so it is refused and its connection closed.
enum Framing {
    /// Why the request must not be believed, or nil.
    static func fault(method: String, fields: [HTTPField], limits: GatewayLimits) -> HTTPResponse? {
        if fields.count > limits.headerFields {
            return refusal(431, "too_many_headers", "more than \(limits.headerFields) header fields")
        }
        guard method.utf8.allSatisfy({ isTokenByte[Int($0)] }), !method.isEmpty else {
            return refusal(400, "invalid_framing", "the method has characters that no method has")
        }
        var hosts = 0
        var lengths = 0
        var codings = 0
        for field in fields {
            guard !field.nameBytes.isEmpty, field.nameBytes.allSatisfy({ isTokenByte[Int($0)] }) else {
                return refusal(
                    400, "invalid_framing", "a header field's name has characters that none may have")
            }
            guard !hasControlCharacter(field.valueBytes) else {
                return refusal(400, "invalid_framing", "a header field holds a control character")
            }
            if field.isNamed("host") { hosts += 1 }
            if field.isNamed("content-length") {
                lengths += 1
                guard !field.valueBytes.isEmpty,
                    field.valueBytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
                else {
                    return refusal(400, "invalid_framing", "Content-Length is not a number")
                }
            }
            if field.isNamed("transfer-encoding") {
                codings += 1
                guard field.value.lowercased() == "chunked" else {
                    return refusal(
                        501, "invalid_framing", "the only transfer coding that is known is chunked")
                }
            }
        }
        if hosts != 1 { return refusal(400, "invalid_framing", "a request must have one Host field") }
        if lengths > 1 { return refusal(400, "invalid_framing", "more than one Content-Length") }
        if codings > 1 { return refusal(400, "invalid_framing", "more than one Transfer-Encoding") }
        if lengths + codings > 1 {
            return refusal(400, "invalid_framing", "both Content-Length and Transfer-Encoding")
        }
        return nil
    }

    /// True for versions of the HTTP library that overlook NUL, a lone CR and a lone LF in a header.
    static let libraryIsLenient = countersign_mhd_is_lenient() != 0

    /// What a header gets that holds more than its fields show.
    static let swallowed = refusal(
        400, "invalid_framing", "the header holds NUL, or a CR or LF that is not part of a line end")

    /// True when each field begins two bytes (CR LF) behind the one before, and the header ends four bytes behind the
    /// last: nothing stands between them that the library did not show.
    static func isWhole(_ fields: [HTTPField], from start: UnsafePointer<CChar>, count: Int) -> Bool {
        var end: UnsafePointer<UInt8>?
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

    /// By byte (RFC 9110, section 5.6.2).
    private static let isTokenByte: [Bool] = {
        let marks = Set("!#$%&'*+-.^_`|~".utf8)
        return (0...UInt8.max).map { byte in
            let character = Character(Unicode.Scalar(byte))
            return character.isASCII && (character.isLetter || character.isNumber) || marks.contains(byte)
        }
    }()

    /// Looks at every byte whatever it finds, so that the processor can take many at a time.
    private static func hasControlCharacter(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        var found: UInt8 = 0
        for byte in bytes {
            found |= (byte < 0x20 ? 1 : 0) & (byte == 0x09 ? 0 : 1)
            found |= byte == 0x7F ? 1 : 0
        }
        return found != 0
    }
}

extension HTTPResponse {
    /// A failure in the native dialect's shape: `code` is a stable word in snake case, `reason` says what happened and
    /// what to do, `requestID` is nil when the request has no name yet.
    static func failure(_ status: Int, code: String, reason: String, requestID: String?) -> HTTPResponse {
        var body = Array(#"{"success":false,"code":""#.utf8)
        body.append(contentsOf: code.utf8)
        body.append(contentsOf: #"","reason":"#.utf8)
        JSONValue.write(reason, to: &body)
        // Segment's clients look for the same text under this name.
        body.append(contentsOf: #","message":"#.utf8)
        JSONValue.write(reason, to: &body)
        if let requestID {
            body.append(contentsOf: #","request_id":""#.utf8)
            body.append(contentsOf: requestID.utf8)
            body.append(UInt8(ascii: "\""))
        }
        body.append(UInt8(ascii: "}"))
        var response = HTTPResponse.json(status, body)
        response.code = code
        return response
    }
}
