internal import CountersignCore

/// The target of the request line (RFC 9112, section 3.2).
struct RequestTarget {
    /// The start of the bytes as received. For comparison only: never dereference it.
    let start: UnsafePointer<UInt8>?
    let count: Int
    /// The path as sent, without the query. `/` if an absolute target has none; `*` in an OPTIONS request for
    /// the server.
    let path: String
    /// The query after `?`, not decoded; nil without `?`.
    let query: String?
    /// Host and port of an absolute target in lower case; nil for other forms.
    let authority: String?
    /// Why the target is invalid for an origin server; otherwise nil.
    let fault: String?

    init(_ bytes: UnsafeBufferPointer<UInt8>) {
        start = bytes.baseAddress
        count = bytes.count
        var rest = bytes[...]
        var authority: Slice<UnsafeBufferPointer<UInt8>>?
        for scheme in ["http://", "https://"]
        where rest.first != UInt8(ascii: "/") && Self.begins(rest, with: scheme) {
            rest = rest.dropFirst(scheme.utf8.count)
            let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
            authority = rest[..<end]
            rest = rest[end...]
        }
        let end = rest.firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        let path = String(decoding: rest[..<end], as: UTF8.self)
        self.path = authority != nil && path.isEmpty ? "/" : path
        query = end == rest.endIndex ? nil : String(decoding: rest[(end + 1)...], as: UTF8.self)
        self.authority = authority.map { String(decoding: $0, as: UTF8.self).lowercased() }
        fault = Self.fault(bytes, path: self.path)
    }

    private static func begins(_ bytes: Slice<UnsafeBufferPointer<UInt8>>, with scheme: String) -> Bool {
        let start = bytes.prefix(scheme.utf8.count).map { $0 | 0x20 }
        return start.elementsEqual(scheme.utf8.map { $0 | 0x20 })
    }

    private static func fault(_ bytes: UnsafeBufferPointer<UInt8>, path: String) -> String? {
        guard path.utf8.first == UInt8(ascii: "/") || path == "*" else {
            return "the target of the request is neither a path nor an absolute URL"
        }
        guard bytes.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }) else {
            return "the target of the request contains characters that must be percent-encoded"
        }
        return nil
    }

    /// Why a path is invalid; otherwise nil. An encoded NUL would end the path in C code. The query is
    /// checked where its parameters are read.
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
