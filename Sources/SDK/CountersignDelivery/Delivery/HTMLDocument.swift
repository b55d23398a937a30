internal import CountersignCore

/// Recognises HTML documents by their first tag.
package enum HTMLDocument {
    /// The first elements of documents. Fragments and XML in responses begin with other elements.
    private static let firstElements: Set = [
        "html", "head", "title", "meta", "base", "link", "style", "script", "noscript", "body", "frameset",
    ]
    private static let maximumBytes = 16_384

    /// Whether `body` begins with a document type of HTML or an element in `firstElements`. Skips byte order marks,
    /// white space, comments and XML declarations. Also reads UTF-16.
    package static func begins(_ body: [UInt8]) -> Bool {
        var rest = body.prefix(maximumBytes).filter { $0 != 0 }[...]
        while true {
            rest = rest.drop { $0 <= 0x20 || $0 >= 0x80 }
            if rest.starts(with: "<!--".utf8) {
                guard let next = skip("-->", in: rest) else { return false }
                rest = next
            } else if rest.starts(with: "<?".utf8) {
                guard let next = skip("?>", in: rest) else { return false }
                rest = next
            } else if rest.first == UInt8(ascii: "<") {
                rest = rest.dropFirst()
                guard rest.first == UInt8(ascii: "!") else { return firstElements.contains(word(rest)) }
                let type = rest.dropFirst()
                return word(type) == "doctype" && word(type.dropFirst(7).drop { $0 <= 0x20 }) == "html"
            } else {
                return false
            }
        }
    }

    private static func skip(_ end: String, in text: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let end = Array(end.utf8)
        return text.indices.first { text[$0...].starts(with: end) }.map { text[$0...].dropFirst(end.count) }
    }

    private static func word(_ text: ArraySlice<UInt8>) -> String {
        String(decoding: text.prefix { $0.isASCIILetter }.map { $0 | 0x20 }, as: UTF8.self)
    }
}
