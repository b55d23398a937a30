internal import CountersignJSON

/// The ranges of parsed values in the source text, for storing them unchanged.
enum JSONSpans {
    static func elements(of list: JSONNode, in root: JSONNode, text: UnsafeRawBufferPointer) -> [Range<Int>] {
        var position = 0
        for member in root.members {
            if member.value.isSame(as: list) { break }
            position += 1
        }
        let start = StrictJSONParser.childStart(
            of: text, at: StrictJSONParser.rootOffset(of: text), index: position)
        return StrictJSONParser.childSpans(
            of: text, at: start, count: list.elements.reduce(0) { count, _ in count + 1 })
    }

    /// The number of elements in an array. Stops counting one beyond `limit`.
    static func count(_ list: JSONNode, upTo limit: Int) -> Int {
        var count = 0
        for _ in list.elements {
            count += 1
            if count > limit { break }
        }
        return count
    }

    static func root(of text: UnsafeRawBufferPointer) -> Range<Int> {
        let start = StrictJSONParser.rootOffset(of: text)
        let end = text.lastIndex { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } ?? start - 1
        return start..<max(start, end + 1)
    }
}
