package import CountersignCore

/// The fields of a `multipart/form-data` body (RFC 7578; RFC 2046, section 5.1).
package struct MultipartForm {
    package static let maximumFields = 64
    private static let longestName = 128
    private static let longestBoundary = 70

    package private(set) var fields: BytewiseDictionary<[UInt8]> = [:]

    /// Nil for files, repeated names, too many fields, a missing boundary or a truncated body.
    package init?(_ request: HTTPRequest) {
        guard let type = request.header("content-type"),
            let boundary = Self.parameter("boundary", of: Array(type.utf8)[...]),
            (1...Self.longestBoundary).contains(boundary.count)
        else { return nil }
        let delimiter = Array("\r\n--".utf8) + boundary
        // The first delimiter may start the body, without a line break before it.
        var rest = (Array("\r\n".utf8) + request.body)[...]
        guard Self.cut(&rest, at: delimiter)?.isEmpty == true else { return nil }
        while !rest.starts(with: "--".utf8) {
            guard fields.count < Self.maximumFields, Self.cut(&rest, at: Array("\r\n".utf8))?.isEmpty == true,
                let name = Self.name(&rest), fields[name] == nil,
                let value = Self.cut(&rest, at: delimiter)
            else { return nil }
            fields[name] = Array(value)
        }
        guard !fields.isEmpty else { return nil }
    }

    private static func name(_ rest: inout ArraySlice<UInt8>) -> String? {
        var found: ArraySlice<UInt8>?
        while let line = cut(&rest, at: Array("\r\n".utf8)) {
            if line.isEmpty {
                guard let found, found.count <= longestName else { return nil }
                return String(validating: found, as: UTF8.self)
            }
            let field = line.prefix { $0 != UInt8(ascii: ":") }
            guard field.withUnsafeBytes({ HTTPSyntax.matches($0, "content-disposition") }) else { continue }
            guard found == nil, parameter("filename", of: line) == nil,
                parameter("filename*", of: line) == nil
            else { return nil }
            found = parameter("name", of: line)
        }
        return nil
    }

    /// The value of a parameter after a semicolon, with or without quotes.
    private static func parameter(
        _ name: StaticString, of text: ArraySlice<UInt8>
    ) -> ArraySlice<UInt8>? {
        var rest = text.drop { $0 != UInt8(ascii: ";") }
        while rest.popFirst() != nil {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
            let found = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
            rest = rest.dropFirst(found.count)
            var value: ArraySlice<UInt8> = []
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst()
                if rest.first == UInt8(ascii: "\"") {
                    value = rest.dropFirst().prefix { $0 != UInt8(ascii: "\"") }
                    rest = rest.dropFirst(value.count + 2).drop { $0 != UInt8(ascii: ";") }
                } else {
                    value = rest.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 }
                    rest = rest.dropFirst(value.count).drop { $0 != UInt8(ascii: ";") }
                }
            }
            if found.withUnsafeBytes({ HTTPSyntax.matches($0, name) }) { return value }
        }
        return nil
    }

    /// Removes the bytes up to and including the delimiter. Returns those before it, or nil without a delimiter.
    private static func cut(_ rest: inout ArraySlice<UInt8>, at delimiter: [UInt8]) -> ArraySlice<UInt8>? {
        guard let range = rest.firstRange(of: delimiter) else { return nil }
        defer { rest = rest[range.upperBound...] }
        return rest[..<range.lowerBound]
    }
}
