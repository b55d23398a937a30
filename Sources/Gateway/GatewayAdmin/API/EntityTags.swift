internal import GatewayHTTP

/// The entity tags of an `If-Match` or `If-None-Match` field (RFC 9110, sections 13.1.1 and 13.1.2). A proxy that
/// compresses responses makes tags weak (`W/"…"`) or adds a suffix (`"…-gzip"`, Apache). Both still identify
/// the same state, because tags are hashes of the uncompressed content.
struct EntityTags {
    private let tags: [Substring.UTF8View]

    init(_ field: String) {
        tags = field.utf8.split(separator: UInt8(ascii: ",")).map { tag in
            func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
            var tag = tag.drop(while: isBlank)
            while let last = tag.last, isBlank(last) { tag = tag.dropLast() }
            return tag.starts(with: "W/".utf8) ? tag.dropFirst(2) : tag
        }
    }

    /// The tags of all `If-None-Match` fields of a request.
    init(cachedBy request: HTTPRequest) {
        self.init(request.headers("if-none-match").joined(separator: ","))
    }

    /// Whether the field is `*` or has a tag of `current`. Those are strong tags with their quotes.
    func match(_ current: [String]) -> Bool {
        tags.contains { tag in tag.elementsEqual("*".utf8) || current.contains { Self.names(tag, $0) } }
    }

    private static func names(_ tag: Substring.UTF8View, _ current: String) -> Bool {
        // All current tags have the same length, so a longer tag with the same beginning differs only by a suffix.
        tag.elementsEqual(current.utf8)
            || tag.starts(with: (current.dropLast() + "-").utf8) && tag.last == UInt8(ascii: "\"")
    }
}
