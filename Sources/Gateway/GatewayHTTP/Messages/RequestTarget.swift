internal import CountersignCore

/// The target of the request line (RFC 9112, section 3.2).
struct RequestTarget {
    /// The path without the query. `/` if an absolute target has no path; `*` in an OPTIONS request for the server.
    let path: String
    /// The query after `?`, not decoded; nil without `?`.
    let query: String?
    /// Host and port of an absolute target in lower case; nil for other forms.
    let authority: String?
    let fault: String?

    init(_ bytes: UnsafeRawBufferPointer) {
        var start = 0
        var authority: String?
        let isValid = bytes.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }
        if bytes.first != UInt8(ascii: "/"), let scheme = Self.schemeLength(bytes) {
            var end = scheme
            while end < bytes.count, bytes[end] != UInt8(ascii: "/"), bytes[end] != UInt8(ascii: "?") {
                end += 1
            }
            authority = isValid ? Self.text(bytes, scheme..<end).lowercased() : ""
            start = end
        }
        let questionMark = bytes[start...].firstIndex(of: UInt8(ascii: "?"))
        let path = Self.text(bytes, start..<(questionMark ?? bytes.count))
        self.path = authority != nil && path.isEmpty ? "/" : path
        query = questionMark.map { Self.text(bytes, ($0 + 1)..<bytes.count) }
        self.authority = authority
        let isPath = authority != nil || bytes.first == UInt8(ascii: "/") || self.path == "*"
        fault =
            !isPath
            ? "the target of the request is neither a path nor an absolute URL"
            : isValid
                ? nil : "the target of the request contains characters that must be percent-encoded"
    }

    private static func schemeLength(_ bytes: UnsafeRawBufferPointer) -> Int? {
        for scheme: StaticString in ["http://", "https://"] {
            let count = scheme.utf8CodeUnitCount
            if bytes.count >= count,
                HTTPSyntax.matches(UnsafeRawBufferPointer(rebasing: bytes[..<count]), scheme)
            {
                return count
            }
        }
        return nil
    }

    private static func text(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> String {
        String(decoding: UnsafeRawBufferPointer(rebasing: bytes[range]), as: UTF8.self)
    }

    /// Returns the fault of a path with malformed percent-encoding or an encoded NUL, which would end a C string.
    static func fault(ofPath path: String) -> String? {
        guard path.utf8.contains(UInt8(ascii: "%")) else { return nil }
        let path = Array(path.utf8)
        var index = 0
        while index < path.count {
            guard path[index] == UInt8(ascii: "%") else {
                index += 1
                continue
            }
            guard index + 2 < path.count, let high = path[index + 1].hexadecimalValue,
                let low = path[index + 2].hexadecimalValue
            else { return "the path has a percent sign without two hexadecimal digits" }
            guard high | low != 0 else { return "the path contains an encoded NUL" }
            index += 3
        }
        return nil
    }
}
