internal import CountersignCore

/// Sets of bytes of the HTTP grammar.
enum HTTPSyntax {
    /// Whether a byte may be part of a token (RFC 9110, section 5.6.2).
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool {
        contains(byte, 0x03FF_6CFA_0000_0000, 0x57FF_FFFF_C7FF_FFFE)
    }

    /// Whether a byte may be part of a host name: a letter, a digit, `-`, `.` or `_`.
    @inline(__always)
    static func isName(_ byte: UInt8) -> Bool {
        contains(byte, 0x03FF_6000_0000_0000, 0x07FF_FFFE_87FF_FFFE)
    }

    /// `low` has a bit for each byte from 0 to 63, `high` for each byte from 64 to 127.
    @inline(__always)
    private static func contains(_ byte: UInt8, _ low: UInt64, _ high: UInt64) -> Bool {
        byte < 0x80 && ((byte < 64 ? low : high) >> UInt64(byte & 63)) & 1 != 0
    }

    /// Whether a byte may not be part of a field value (RFC 9110, section 5.5).
    @inline(__always)
    static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != 0x09 || byte == 0x7F }

    static func hasControlCharacter(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bytes[bytes.bindMemory(to: UInt8.self).printablePrefix...].contains(where: isControl)
    }

    /// Whether `bytes` equal `text` without regard to ASCII case. `text` must be in lower case.
    @inline(__always)
    static func matches(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<bytes.count {
            let byte = bytes[index]
            let lower = byte &- 0x41 < 26 ? byte | 0x20 : byte
            if lower != text.utf8Start[index] { return false }
        }
        return true
    }

    static func trimmed(_ range: Range<Int>, of bytes: UnsafeRawBufferPointer) -> Range<Int> {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return start..<end
    }
}

/// The rejection of a malformed request. The end of its body may be unknown, so the connection is closed.
struct RequestFault: Error, Equatable {
    let status: Int
    let code: String
    let reason: String

    init(_ status: Int, _ code: String, _ reason: String) {
        self.status = status
        self.code = code
        self.reason = reason
    }

    static func == (left: Self, right: Self) -> Bool {
        left.status == right.status && left.code == right.code && left.reason == right.reason
    }

    static func framing(_ reason: String) -> RequestFault { RequestFault(400, "invalid_framing", reason) }

    var response: HTTPResponse { .failure(status, code, reason, requestID: nil) }
}
