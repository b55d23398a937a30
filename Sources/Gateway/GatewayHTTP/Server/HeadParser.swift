internal import CountersignCore
internal import GatewayModel

#if canImport(Darwin)
    internal import Darwin
#else
    internal import Glibc
#endif

/// The way to find the end of a request's body (RFC 9112, section 6.3).
enum BodyFraming: Equatable {
    case none
    case length(Int)
    case chunked
}

/// A parser for request lines and header fields (RFC 9112, sections 2 to 6). A head has exactly one
/// interpretation, or it is rejected. Takes linear time, and copies only the target and the host.
struct HeadParser {
    enum Progress: Equatable {
        case incomplete
        case complete
        case rejected(RequestFault)
    }

    private struct Field {
        let name: Range<Int>
        let value: Range<Int>
    }

    private let rules: HeadLimits
    private var scanned = 0
    private var lineStart = 0
    private var start = 0
    private var fields: ContiguousArray<Field> = []

    private(set) var methodRange = 0..<0
    private(set) var targetRange = 0..<0
    private var target: RequestTarget?
    private var isHTTP10 = false

    // Set by a complete head.
    private(set) var framing = BodyFraming.none
    private(set) var keepsAlive = false
    /// Whether the client waits for an interim response before it sends the body.
    private(set) var expectsContinue = false

    /// The maximum length of a method. Standard methods have at most 17 characters.
    private static let longestMethod = 32

    init(_ rules: HeadLimits) {
        self.rules = rules
    }

    mutating func reset() {
        scanned = 0
        lineStart = 0
        start = 0
        fields.removeAll(keepingCapacity: true)
        methodRange = 0..<0
        targetRange = 0..<0
        target = nil
        framing = .none
        keepsAlive = false
        expectsContinue = false
    }

    /// Whether bytes other than one empty line were received. May be false after a rejection.
    var hasBegun: Bool { scanned > lineStart || hasRequestLine }
    var hasRequestLine: Bool { !methodRange.isEmpty }
    var isOld: Bool { isHTTP10 }
    /// The length of a complete head in bytes.
    var count: Int { lineStart }

    /// Parses the bytes received so far, which begin with those of the previous call.
    mutating func parse(_ bytes: UnsafeRawBufferPointer) -> Progress {
        while let end = Self.lineFeed(in: bytes, from: scanned) {
            guard end > lineStart, bytes[end - 1] == 0x0D else {
                return .rejected(.framing("a line of the header ends with LF instead of CR LF"))
            }
            let line = lineStart..<(end - 1)
            if !line.isEmpty, end + 1 - start > rules.headerBytes { return .rejected(tooLarge) }
            scanned = end + 1
            do throws(RequestFault) {
                if !hasRequestLine {
                    // RFC 9112, section 2.2: an empty line before the request is ignored.
                    if line.isEmpty {
                        guard start == 0 else { throw .framing("empty lines before the request") }
                        start = end + 1
                    } else {
                        try readRequestLine(line, bytes)
                    }
                } else if line.isEmpty {
                    lineStart = end + 1
                    try check(bytes)
                    return .complete
                } else {
                    try readField(line, bytes)
                }
            } catch {
                lineStart = end + 1
                return .rejected(error)
            }
            lineStart = end + 1
        }
        scanned = bytes.count
        // `+ 2`: the limit excludes the empty line that ends the head.
        if bytes.count - start > rules.headerBytes + 2 { return .rejected(tooLarge) }
        if !hasRequestLine, let fault = faultOfPartialLine(bytes) { return .rejected(fault) }
        return .incomplete
    }

    private static func lineFeed(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        guard start < bytes.count, let base = bytes.baseAddress,
            let found = memchr(base + start, 0x0A, bytes.count - start)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    private var tooLarge: RequestFault {
        hasRequestLine
            ? RequestFault(431, "header_too_large", "the header has more than \(rules.headerBytes) bytes")
            : RequestFault(
                414, "target_too_long", "the request line has more than \(rules.headerBytes) bytes")
    }

    /// Rejects a first line that cannot begin with a method, such as TLS, before it is complete.
    private func faultOfPartialLine(_ bytes: UnsafeRawBufferPointer) -> RequestFault? {
        guard lineStart < bytes.count else { return nil }
        if bytes[lineStart] == 0x0D, bytes.count == lineStart + 1 { return nil }
        let most = min(bytes.count, lineStart + Self.longestMethod + 1)
        var index = lineStart
        while index < most, HTTPSyntax.isToken(bytes[index]) { index += 1 }
        return index == bytes.count || index > lineStart && index < most && bytes[index] == 0x20
            ? nil : Self.badMethod
    }

    private static let badMethod = RequestFault.framing(
        "the method contains invalid characters or is too long")

    /// RFC 9112, section 3: one space between the parts.
    private mutating func readRequestLine(
        _ line: Range<Int>, _ bytes: UnsafeRawBufferPointer
    ) throws(RequestFault) {
        var index = line.lowerBound
        while index < line.upperBound, HTTPSyntax.isToken(bytes[index]) { index += 1 }
        guard index > line.lowerBound, index < line.upperBound, bytes[index] == 0x20,
            index - line.lowerBound <= Self.longestMethod
        else { throw Self.badMethod }
        let method = line.lowerBound..<index
        let version = line.upperBound - 8
        guard version > index + 1, bytes[version - 1] == 0x20 else { throw Self.badLine }
        let target = (index + 1)..<(version - 1)
        guard !target.isEmpty, !Self.has(0x20, bytes, target) else { throw Self.badLine }
        guard Self.part(bytes, version..<(version + 5)).elementsEqual("HTTP/".utf8),
            bytes[version + 5].isASCIIDigit, bytes[version + 6] == UInt8(ascii: "."),
            bytes[version + 7].isASCIIDigit
        else { throw Self.badLine }
        methodRange = method
        targetRange = target
        // A higher minor version is processed as HTTP/1.1 (RFC 9110, section 2.5).
        guard bytes[version + 5] == UInt8(ascii: "1") else {
            throw RequestFault(505, "invalid_framing", "the gateway speaks HTTP/1.1 and HTTP/1.0")
        }
        isHTTP10 = bytes[version + 7] == UInt8(ascii: "0")
    }

    private static let badLine = RequestFault.framing(
        "the request line is not a method, a target and a version with one space between them")

    private static func has(_ byte: UInt8, _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> Bool {
        bytes.baseAddress.map { memchr($0 + range.lowerBound, Int32(byte), range.count) != nil } ?? false
    }

    @inline(__always)
    private static func part(
        _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>
    ) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[range]) }

    /// Rejects folded lines (RFC 9112, section 5.2), because they begin with white space and no name does.
    private mutating func readField(
        _ line: Range<Int>, _ bytes: UnsafeRawBufferPointer
    ) throws(RequestFault) {
        if fields.count >= rules.headerFields {
            throw RequestFault(431, "too_many_headers", "more than \(rules.headerFields) header fields")
        }
        var colon = line.lowerBound
        while colon < line.upperBound, HTTPSyntax.isToken(bytes[colon]) { colon += 1 }
        guard colon > line.lowerBound, colon < line.upperBound, bytes[colon] == UInt8(ascii: ":") else {
            throw .framing("a header field's name contains invalid characters")
        }
        let value = HTTPSyntax.trimmed((colon + 1)..<line.upperBound, of: bytes)
        guard !HTTPSyntax.hasControlCharacter(Self.part(bytes, value)) else {
            throw .framing("a header field contains a control character")
        }
        fields.append(Field(name: line.lowerBound..<colon, value: value))
    }

    private mutating func check(_ bytes: UnsafeRawBufferPointer) throws(RequestFault) {
        let method = Self.part(bytes, methodRange)
        // RFC 9110, section 9.3.6.
        guard !method.elementsEqual("CONNECT".utf8) else {
            throw RequestFault(
                501, "invalid_target", "the gateway is not a proxy: it does not open tunnels")
        }
        let target = RequestTarget(Self.part(bytes, targetRange))
        if let fault = target.fault { throw RequestFault(400, "invalid_target", fault) }
        // RFC 9110, section 9.3.7.
        if target.path == "*", !method.elementsEqual("OPTIONS".utf8) || target.query != nil {
            throw RequestFault(400, "invalid_target", "the target * is for OPTIONS only")
        }
        var seen: UInt64 = 0
        var (host, length, coding): (Range<Int>?, Range<Int>?, Range<Int>?)
        var (closes, keeps) = (false, false)
        for field in fields {
            let name = Self.part(bytes, field.name)
            if let repeated = rules.noteSingle(name, in: &seen) {
                throw RequestFault(400, "duplicate_field", "more than one \(repeated) field: send only one")
            }
            switch name.count {
            case 4 where HTTPSyntax.matches(name, "host"):
                guard host == nil else { throw Self.oneHost }
                host = field.value
            case 14 where HTTPSyntax.matches(name, "content-length"):
                guard length == nil else { throw .framing("more than one Content-Length") }
                length = field.value
            case 17 where HTTPSyntax.matches(name, "transfer-encoding"):
                guard coding == nil else { throw .framing("more than one Transfer-Encoding") }
                coding = field.value
            case 10 where HTTPSyntax.matches(name, "connection"):
                Self.readOptions(field.value, bytes, &closes, &keeps)
            case 6 where HTTPSyntax.matches(name, "expect"):
                expectsContinue =
                    HTTPSyntax.matches(Self.part(bytes, field.value), "100-continue") && !isHTTP10
            default: break
            }
        }
        try readFraming(length: length, coding: coding, bytes)
        guard let host else { throw Self.oneHost }
        guard HostName.isValid(UnsafeRawBufferPointer(rebasing: bytes[host])) else {
            throw RequestFault(
                400, "invalid_host", "Host is not a name or address with or without a port")
        }
        // RFC 9112, section 3.2.2, gives the target precedence. Two different hosts are rejected
        // nevertheless, because one must be wrong.
        if let authority = target.authority,
            authority != String(decoding: bytes[host], as: UTF8.self).lowercased()
        {
            throw RequestFault(
                400, "invalid_host", "Host and the target of the request name different hosts")
        }
        keepsAlive = !closes && (!isHTTP10 || keeps)
        self.target = target
    }

    private static let oneHost = RequestFault.framing("a request must have one Host field")

    /// RFC 9112, section 6.
    private mutating func readFraming(
        length: Range<Int>?, coding: Range<Int>?, _ bytes: UnsafeRawBufferPointer
    ) throws(RequestFault) {
        guard let coding else {
            if let length { framing = .length(try Self.length(Self.part(bytes, length))) }
            return
        }
        if length != nil { throw .framing("both Content-Length and Transfer-Encoding") }
        if isHTTP10 { throw .framing("Transfer-Encoding in a request of HTTP/1.0") }
        let text = Self.part(bytes, coding)
        guard HTTPSyntax.matches(text, "chunked") else {
            // Text that begins with `chunked` gets 400 (RFC 9112, section 6.3), another coding 501 (section 6.1).
            let isUnknown =
                !text.isEmpty && !HTTPSyntax.matches(Self.part(text, 0..<min(7, text.count)), "chunked")
            throw RequestFault(
                isUnknown ? 501 : 400, "invalid_framing", "the only supported transfer coding is chunked")
        }
        framing = .chunked
    }

    /// Parses Content-Length. Rejects a leading zero, because some implementations read such a number as octal.
    private static func length(_ text: UnsafeRawBufferPointer) throws(RequestFault) -> Int {
        var value = 0
        for byte in text {
            guard byte.isASCIIDigit else { throw .framing("Content-Length is not a number") }
            let (product, isLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isLarger) = product.addingReportingOverflow(Int(byte - UInt8(ascii: "0")))
            guard !isLarge, !isLarger else { throw .framing("Content-Length is too large") }
            value = sum
        }
        guard !text.isEmpty, text.count == 1 || text[0] != UInt8(ascii: "0") else {
            throw .framing("Content-Length is not a number")
        }
        return value
    }

    /// RFC 9112, section 9.3.
    private static func readOptions(
        _ value: Range<Int>, _ bytes: UnsafeRawBufferPointer, _ closes: inout Bool, _ keeps: inout Bool
    ) {
        var start = value.lowerBound
        while start < value.upperBound {
            var end = start
            while end < value.upperBound, bytes[end] != UInt8(ascii: ",") { end += 1 }
            let option = part(bytes, HTTPSyntax.trimmed(start..<end, of: bytes))
            if HTTPSyntax.matches(option, "close") { closes = true }
            if HTTPSyntax.matches(option, "keep-alive") { keeps = true }
            start = end + 1
        }
    }
}

extension HeadParser {
    /// Returns the target. Replaces the elements of `all` by the fields read so far, which point into `bytes`.
    mutating func takeFields(of bytes: UnsafeRawBufferPointer, to all: inout [HTTPField]) -> RequestTarget {
        all.removeAll(keepingCapacity: true)
        for field in fields {
            all.append(
                HTTPField(
                    nameBytes: Self.part(bytes, field.name).assumingMemoryBound(to: UInt8.self),
                    valueBytes: Self.part(bytes, field.value).assumingMemoryBound(to: UInt8.self)))
        }
        return target.take() ?? RequestTarget(Self.part(bytes, targetRange))
    }
}

/// The text `uri-host [ ":" port ]` (RFC 9110, section 7.2). A name has only letters, digits, `-`, `.` and `_`.
enum HostName {
    static func isValid(_ text: UnsafeRawBufferPointer) -> Bool {
        var rest = text[...]
        if rest.first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let inner = String(decoding: rest[1..<end], as: UTF8.self)
            guard inner.utf8.contains(UInt8(ascii: ":")), NetworkAddress(inner) != nil else { return false }
            rest = rest[(end + 1)...]
        } else {
            var end = 0
            while end < text.count, HTTPSyntax.isName(text[end]) { end += 1 }
            guard end > 0 else { return false }
            rest = rest[end...]
        }
        guard let colon = rest.first else { return true }
        let port = rest.dropFirst()
        return colon == UInt8(ascii: ":") && port.count <= 5 && port.allSatisfy(\.isASCIIDigit)
            && port.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) } <= UInt16.max
    }
}
