internal import CStrictJSON
internal import Foundation

package enum StrictJSONError: Error {
    case empty
    case syntax
    case notUTF8
    case tooDeep
    case numberOutOfRange
    case tooLarge
    case duplicateMember
    case nameTooLong
    case outOfMemory
}

/// A strict JSON parser (RFC 8259) for token headers, claims and request bodies.
///
/// Accepts UTF-8 without a byte order mark, limited in size and depth. Rejects repeated member names (RFC
/// 7515, section 4; RFC 7519, section 4). Not thread-safe; reuses its memory.
package final class StrictJSONParser {
    private let parser: OpaquePointer

    /// ``parse(_:_:)`` throws `nameTooLong` for a member's name of more than `maximumNameBytes` bytes.
    package init(maximumBytes: Int, maximumDepth: Int = 64, maximumNameBytes: Int = .max) {
        guard let parser = strict_json_parser_create(maximumBytes, maximumDepth + 1, maximumNameBytes)
        else {
            preconditionFailure("no memory for a JSON parser")
        }
        self.parser = parser
    }

    deinit {
        strict_json_parser_destroy(parser)
    }

    /// The nodes are invalid after `body` returns.
    package func parse<Result>(
        _ bytes: UnsafeRawBufferPointer, _ body: (JSONNode) throws -> Result
    ) throws -> Result {
        var tape = strict_json_tape()
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress else { throw StrictJSONError.empty }
        switch strict_json_parse(parser, base, bytes.count, &tape) {
        case STRICT_JSON_OK:
            return try body(
                JSONNode(words: tape.words, strings: tape.strings, digits: tape.digits, index: 1))
        case STRICT_JSON_EMPTY: throw StrictJSONError.empty
        case STRICT_JSON_UTF8: throw StrictJSONError.notUTF8
        case STRICT_JSON_DEPTH: throw StrictJSONError.tooDeep
        case STRICT_JSON_NUMBER: throw StrictJSONError.numberOutOfRange
        case STRICT_JSON_TOO_LARGE: throw StrictJSONError.tooLarge
        case STRICT_JSON_DUPLICATE: throw StrictJSONError.duplicateMember
        case STRICT_JSON_NAME: throw StrictJSONError.nameTooLong
        case STRICT_JSON_NO_MEMORY: throw StrictJSONError.outOfMemory
        default: throw StrictJSONError.syntax
        }
    }

    package func parse<Result>(bytes: [UInt8], _ body: (JSONNode) throws -> Result) throws -> Result {
        try bytes.withUnsafeBytes { try parse($0, body) }
    }

    /// The ranges of the values in the object or array at `offset` of a parsed text, in order.
    package static func childSpans(
        of text: UnsafeRawBufferPointer, at offset: Int, count: Int
    ) -> [Range<Int>] {
        guard let base = text.bindMemory(to: UInt8.self).baseAddress else { return [] }
        return withUnsafeTemporaryAllocation(of: strict_json_span.self, capacity: count) { spans in
            let found = strict_json_children(base, text.count, offset, spans.baseAddress, count)
            return (0..<found).map { spans[$0].start..<spans[$0].end }
        }
    }

    package static func childStart(of text: UnsafeRawBufferPointer, at offset: Int, index: Int) -> Int {
        guard let base = text.bindMemory(to: UInt8.self).baseAddress else { return text.count }
        return strict_json_child_start(base, text.count, offset, index)
    }

    package static func rootOffset(of text: UnsafeRawBufferPointer) -> Int {
        text.firstIndex { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 } ?? text.count
    }
}

/// A value of a parsed text: an index on the parser's tape. Valid only inside the closure that received it.
package struct JSONNode {
    let words: UnsafePointer<UInt64>
    let strings: UnsafePointer<UInt8>
    /// The digits of integers that do not fit 64 bits.
    let digits: UnsafePointer<UInt8>?
    let index: Int

    package enum Kind {
        case null, bool, number, string, array, object
    }

    package var kind: Kind {
        switch tag {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
        case UInt8(ascii: "n"): .null
        default: .number
        }
    }

    package var isNull: Bool { tag == UInt8(ascii: "n") }

    package var utf8: UnsafeBufferPointer<UInt8>? {
        guard tag == UInt8(ascii: "\"") else { return nil }
        return text(at: words[index])
    }

    package var string: String? { utf8.map { String(decoding: $0, as: UTF8.self) } }

    /// The string if it is ASCII and at most 64 bytes long. Compare untrusted strings with this property or by bytes.
    /// Swift's `String` compares and hashes a run of combining marks in quadratic time, a mebibyte in minutes.
    package var word: String? {
        guard let utf8, utf8.count <= 64, utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        return String(decoding: utf8, as: UTF8.self)
    }

    package var bool: Bool? {
        switch tag {
        case UInt8(ascii: "t"): true
        case UInt8(ascii: "f"): false
        default: nil
        }
    }

    /// The number, which is finite; nil if this is not a number.
    package var double: Double? {
        switch tag {
        case UInt8(ascii: "d"): Double(bitPattern: words[index + 1])
        case UInt8(ascii: "l"): Double(Int64(bitPattern: words[index + 1]))
        case UInt8(ascii: "u"): Double(words[index + 1])
        default: nil
        }
    }

    /// The number if it has no fraction or exponent and fits `Int64`; otherwise nil.
    package var int64: Int64? {
        tag == UInt8(ascii: "l") ? Int64(bitPattern: words[index + 1]) : nil
    }

    /// The digits of a number without fraction and exponent, with its sign; `0` for `-0`. Otherwise nil.
    package var integer: String? {
        switch tag {
        case UInt8(ascii: "l"): return String(Int64(bitPattern: words[index + 1]))
        case UInt8(ascii: "u"): return String(words[index + 1])
        case UInt8(ascii: "d"):
            let place = Int(words[index] & 0x00FF_FFFF_FFFF_FFFF)
            guard place > 0, let digits else { return nil }
            let start = digits + (place - 1)
            var count = 0
            while start[count] != UInt8(ascii: "e") { count += 1 }
            return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
        default: return nil
        }
    }

    /// The elements of an array; empty if this is not an array.
    package var elements: JSONElements {
        JSONElements(
            node: self, position: tag == UInt8(ascii: "[") ? index + 1 : index, end: UInt8(ascii: "]"))
    }

    /// The members of an object in the order of the text; empty if this is not an object.
    package var members: JSONMembers {
        JSONMembers(node: self, position: tag == UInt8(ascii: "{") ? index + 1 : index)
    }

    package subscript(name: StaticString) -> JSONNode? {
        guard tag == UInt8(ascii: "{") else { return nil }
        var at = index + 1
        while UInt8(words[at] >> 56) != UInt8(ascii: "}") {
            let key = text(at: words[at])
            if key.count == name.utf8CodeUnitCount, let start = key.baseAddress,
                memcmp(start, name.utf8Start, key.count) == 0
            {
                return node(at + 1)
            }
            at = node(at + 1).after
        }
        return nil
    }

    package subscript(named name: String) -> JSONNode? {
        members.first { $0.name.elementsEqual(name.utf8) }?.value
    }

    /// Whether both nodes are at the same position of the same parsed text.
    package func isSame(as other: JSONNode) -> Bool { words == other.words && index == other.index }

    var tag: UInt8 { UInt8(words[index] >> 56) }

    var after: Int {
        switch tag {
        case UInt8(ascii: "{"), UInt8(ascii: "["): Int(words[index] & 0xFFFF_FFFF)
        case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
        default: index + 1
        }
    }

    func node(_ index: Int) -> JSONNode {
        JSONNode(words: words, strings: strings, digits: digits, index: index)
    }

    func text(at word: UInt64) -> UnsafeBufferPointer<UInt8> {
        let start = strings + Int(word & 0x00FF_FFFF_FFFF_FFFF)
        let length = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
        return UnsafeBufferPointer(start: start + 4, count: Int(length))
    }
}

package struct JSONElements: Sequence, IteratorProtocol {
    let node: JSONNode
    var position: Int
    let end: UInt8

    package mutating func next() -> JSONNode? {
        guard position > node.index, UInt8(node.words[position] >> 56) != end else { return nil }
        let element = node.node(position)
        position = element.after
        return element
    }
}

package struct JSONMembers: Sequence, IteratorProtocol {
    let node: JSONNode
    var position: Int

    package mutating func next() -> (name: UnsafeBufferPointer<UInt8>, value: JSONNode)? {
        guard position > node.index, UInt8(node.words[position] >> 56) != UInt8(ascii: "}") else {
            return nil
        }
        let value = node.node(position + 1)
        let name = node.text(at: node.words[position])
        position = value.after
        return (name, value)
    }
}
