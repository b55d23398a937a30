internal import CountersignCore

/// A parser for a chunked body (RFC 9112, section 7.1). Rejects white space around a chunk's size and bare
/// line feeds. Checks and drops extensions and trailer fields.
struct ChunkedBodyParser {
    enum Step: Equatable {
        case content(Range<Int>)
        case incomplete
        case end
        case rejected(RequestFault)
        /// Many nearly empty chunks. Parsing them blocks the thread that serves other clients.
        case crumbled
    }

    private enum State {
        case sizeStart, size, sizeLineFeed
        case extensionStart, extensionName, extensionValueStart, extensionToken, extensionText,
            extensionEscape, extensionTextEnd
        case content, contentReturn, contentLineFeed
        case trailerStart, trailerName, trailerValue, trailerLineFeed, lastLineFeed, end
    }

    private let headerBytes: Int
    private let headerFields: Int
    private var state = State.sizeStart
    private var size = 0
    private var digits = 0
    /// The bytes of all extensions, or of the trailer.
    private var otherBytes = 0
    private var trailerFields = 0
    private var count = 0
    private var bytes = 0

    private static let longestExtensions = 1_024

    init(_ rules: HeadLimits) {
        headerBytes = rules.headerBytes
        headerFields = rules.headerFields
    }

    /// Parses bytes from `position` and advances `position`. After `content`, call `next` again.
    mutating func next(_ input: UnsafeRawBufferPointer, from position: inout Int) -> Step {
        while position < input.count {
            if state == .content {
                let part = position..<min(input.count, position + size)
                size -= part.count
                position = part.upperBound
                if size == 0 { state = .contentReturn }
                return .content(part)
            }
            let byte = input[position]
            position += 1
            do throws(RequestFault) {
                try take(byte)
            } catch {
                return .rejected(error)
            }
            if state == .content, count > 500, bytes < 32 * count { return .crumbled }
            if state == .end { return .end }
        }
        return .incomplete
    }

    private mutating func take(_ byte: UInt8) throws(RequestFault) {
        switch state {
        case .sizeStart, .size:
            if let digit = byte.hexadecimalValue {
                digits += 1
                guard digits <= 15 else { throw .framing("the size of a chunk is too large") }
                size = size << 4 | Int(digit)
                state = .size
            } else if state == .size, byte == 0x0D {
                state = .sizeLineFeed
            } else if state == .size, byte == UInt8(ascii: ";") {
                try expect(true, .extensionStart)
            } else {
                throw .framing("the size of a chunk is not a hexadecimal number")
            }
        case .extensionStart: try expect(HTTPSyntax.isToken(byte), .extensionName)
        case .extensionName:
            if byte == UInt8(ascii: "=") {
                try expect(true, .extensionValueStart)
            } else {
                try readExtension(byte, .extensionName)
            }
        case .extensionValueStart:
            try expect(
                byte == UInt8(ascii: "\"") || HTTPSyntax.isToken(byte),
                byte == UInt8(ascii: "\"") ? .extensionText : .extensionToken)
        case .extensionToken: try readExtension(byte, .extensionToken)
        case .extensionText:
            try expect(
                !HTTPSyntax.isControl(byte),
                byte == UInt8(ascii: "\"")
                    ? .extensionTextEnd : byte == UInt8(ascii: "\\") ? .extensionEscape : .extensionText)
        case .extensionEscape: try expect(!HTTPSyntax.isControl(byte), .extensionText)
        case .extensionTextEnd: try readExtension(byte, nil)
        case .sizeLineFeed:
            guard byte == 0x0A else { throw Self.lineEnd }
            digits = 0
            guard size > 0 else {
                otherBytes = 0
                return state = .trailerStart
            }
            count += 1
            bytes += size
            state = .content
        case .content, .end: break
        case .contentReturn: try lineEnd(byte == 0x0D, .contentLineFeed)
        case .contentLineFeed: try lineEnd(byte == 0x0A, .sizeStart)
        case .trailerStart where byte == 0x0D: state = .lastLineFeed
        case .trailerStart, .trailerName:
            try countTrailer()
            if state == .trailerName, byte == UInt8(ascii: ":") { return state = .trailerValue }
            guard HTTPSyntax.isToken(byte) else { throw Self.badTrailer }
            state = .trailerName
        case .trailerValue:
            try countTrailer()
            if byte == 0x0D { return state = .trailerLineFeed }
            guard !HTTPSyntax.isControl(byte) else { throw Self.badTrailer }
        case .trailerLineFeed:
            trailerFields += 1
            guard trailerFields <= headerFields else {
                throw RequestFault(431, "too_many_headers", "more than \(headerFields) trailer fields")
            }
            try lineEnd(byte == 0x0A, .trailerStart)
        case .lastLineFeed: try lineEnd(byte == 0x0A, .end)
        }
    }

    private static let lineEnd = RequestFault.framing("a line of a chunk does not end with CR LF")
    private static let badTrailer = RequestFault.framing("a trailer field is malformed")

    private mutating func lineEnd(_ isExpected: Bool, _ next: State) throws(RequestFault) {
        guard isExpected else { throw Self.lineEnd }
        state = next
    }

    /// Reads the byte after an extension's name or value. If `same` is set, the byte may also continue it.
    private mutating func readExtension(_ byte: UInt8, _ same: State?) throws(RequestFault) {
        if byte == 0x0D { return state = .sizeLineFeed }
        if byte == UInt8(ascii: ";") { return try expect(true, .extensionStart) }
        try expect(same != nil && HTTPSyntax.isToken(byte), same ?? state)
    }

    private mutating func expect(_ isExpected: Bool, _ next: State) throws(RequestFault) {
        otherBytes += 1
        guard isExpected, otherBytes <= Self.longestExtensions else {
            throw .framing("a chunk extension is malformed or too long")
        }
        state = next
    }

    private mutating func countTrailer() throws(RequestFault) {
        otherBytes += 1
        guard otherBytes <= headerBytes else {
            throw RequestFault(431, "header_too_large", "the trailer has more than \(headerBytes) bytes")
        }
    }
}
