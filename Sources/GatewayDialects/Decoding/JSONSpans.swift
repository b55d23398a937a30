internal import CountersignJOSE

/// Where parsed values stand in the text they were read from, so that it can be kept as it came.
enum JSONSpans {
    /// The elements of `list`, a member of the object `root`, which is the whole text.
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

    /// How many elements an array has; counts no further than one beyond `limit`.
    static func count(_ list: JSONNode, upTo limit: Int) -> Int {
        var count = 0
        for _ in list.elements {
            count += 1
            if count > limit { break }
        }
        return count
    }

    /// The whole text without the white space around it.
    static func root(of text: UnsafeRawBufferPointer) -> Range<Int> {
        let start = StrictJSONParser.rootOffset(of: text)
        let end = text.lastIndex { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } ?? start - 1
        return start..<max(start, end + 1)
    }
}
