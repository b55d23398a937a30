internal import Foundation

// In this package, text compares by its UTF-8 bytes wherever this module is imported.
//
// The standard library compares and hashes canonical forms (NFC). Two user ids that a database keeps apart would be
// equal, and comparing a run of combining marks takes quadratic time.
//
// The declarations below have the same signatures as the standard library's, so the compiler prefers them, also in
// synthesized `==` and `hash(into:)`. They cannot replace a conformance: use `BytewiseDictionary`, `BytewiseSet` and
// `TextEnum` instead. `scripts/text-lint.py` fails if the gateway uses the standard library's comparison.

extension String {
    private typealias Storage = (UInt, UInt)

    package func hasSameBytes(as other: String) -> Bool {
        // Copies of a text have the same storage, and short texts are stored in the value.
        if unsafeBitCast(self, to: Storage.self) == unsafeBitCast(other, to: Storage.self) { return true }
        let count = utf8.count
        guard count == other.utf8.count else { return false }
        return withBytes { one in
            other.withBytes { other in
                // An empty buffer may have no base address.
                guard let one = one.baseAddress, let other = other.baseAddress else { return count == 0 }
                return memcmp(one, other, count) == 0
            }
        }
    }

    /// Calls `body` with the UTF-8 bytes. Avoids `withUTF8` if possible, which copies, retains and releases the text.
    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = utf8.withContiguousStorageIfAvailable(body) { return result }
        // A text bridged from Objective-C.
        var copy = self
        return copy.withUTF8(body)
    }

    package static func == (left: String, right: String) -> Bool { left.hasSameBytes(as: right) }
    package static func != (left: String, right: String) -> Bool { !left.hasSameBytes(as: right) }
    package static func == (left: String?, right: String) -> Bool { left?.hasSameBytes(as: right) ?? false }
    package static func != (left: String?, right: String) -> Bool {
        !(left?.hasSameBytes(as: right) ?? false)
    }
    package static func ~= (pattern: String, text: String) -> Bool { pattern.hasSameBytes(as: text) }

    /// Orders by UTF-8 bytes, as SQLite and PostgreSQL do.
    package static func < (left: String, right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
    package static func > (left: String, right: String) -> Bool { right < left }
    package static func <= (left: String, right: String) -> Bool { !(right < left) }
    package static func >= (left: String, right: String) -> Bool { !(left < right) }
}

extension Optional<String> {
    package static func == (left: String?, right: String?) -> Bool {
        switch (left, right) {
        case (let left?, let right?): left.hasSameBytes(as: right)
        case (nil, nil): true
        default: false
        }
    }

    package static func != (left: String?, right: String?) -> Bool { !(left == right) }
    package static func ~= (pattern: String, text: String?) -> Bool { text == pattern }

    package static func == (left: String?, right: _OptionalNilComparisonType) -> Bool {
        if case .none = left { true } else { false }
    }

    package static func != (left: String?, right: _OptionalNilComparisonType) -> Bool {
        if case .none = left { false } else { true }
    }
}

extension Substring {
    package static func == (left: Substring, right: Substring) -> Bool { left.utf8.elementsEqual(right.utf8) }
    package static func != (left: Substring, right: Substring) -> Bool {
        !left.utf8.elementsEqual(right.utf8)
    }
    package static func == (left: Substring?, right: Substring) -> Bool {
        left?.utf8.elementsEqual(right.utf8) ?? false
    }
    package static func != (left: Substring?, right: Substring) -> Bool { !(left == right) }
    package static func ~= (pattern: Substring, text: Substring) -> Bool {
        pattern.utf8.elementsEqual(text.utf8)
    }
}

extension StringProtocol {
    package static func == (left: Self, right: some StringProtocol) -> Bool {
        left.utf8.elementsEqual(right.utf8)
    }

    package static func != (left: Self, right: some StringProtocol) -> Bool {
        !left.utf8.elementsEqual(right.utf8)
    }

    package func hasPrefix(_ prefix: some StringProtocol) -> Bool { utf8.starts(with: prefix.utf8) }

    package func hasSuffix(_ suffix: some StringProtocol) -> Bool {
        utf8.count >= suffix.utf8.count && utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }
}

extension String {
    package func hasPrefix(_ prefix: String) -> Bool {
        withBytes { own in prefix.withBytes { own.starts(with: $0) } }
    }

    package func hasSuffix(_ suffix: String) -> Bool {
        utf8.count >= suffix.utf8.count && utf8.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
    }

    package func contains(_ character: Character) -> Bool { self[...].contains(character) }
    package func contains(_ text: String) -> Bool { self[...].contains(text) }
    package func range(of text: String) -> Range<Index>? { self[...].range(of: text) }
    package func firstIndex(of character: Character) -> Index? { self[...].firstIndex(of: character) }

    /// Splits at each `separator`, which must be one ASCII character.
    package func split(
        separator: Character, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        self[...].split(
            separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences)
    }

    package func replacing(_ text: String, with replacement: String) -> String {
        self[...].replacing(text, with: replacement)
    }
}

extension Substring {
    package func hasPrefix(_ prefix: String) -> Bool { utf8.starts(with: prefix.utf8) }

    package func contains(_ character: Character) -> Bool { firstIndex(of: character) != nil }
    package func contains(_ text: String) -> Bool { range(of: text) != nil }

    /// The position of the first `character`, even if a combining mark follows it.
    package func firstIndex(of character: Character) -> Index? { range(of: String(character))?.lowerBound }

    package func lastIndex(of character: Unicode.Scalar) -> Index? { unicodeScalars.lastIndex(of: character) }

    package func range(of text: String) -> Range<Index>? {
        var (own, text) = (self, text)
        let count = text.utf8.count
        let offset: Int? = own.withUTF8 { bytes in
            text.withUTF8 { wanted -> Int? in
                guard let end = bytes.baseAddress.map({ $0 + bytes.count }), let first = wanted.baseAddress
                else {
                    return nil
                }
                var start = end - bytes.count
                while let found = memchr(start, Int32(first.pointee), end - start) {
                    start = UnsafePointer(found.assumingMemoryBound(to: UInt8.self))
                    guard end - start >= count else { return nil }
                    if memcmp(start, first, count) == 0 { return bytes.count - (end - start) }
                    start += 1
                }
                return nil
            }
        }
        return offset.map {
            let lower = utf8.index(startIndex, offsetBy: $0)
            return lower..<utf8.index(lower, offsetBy: count)
        }
    }

    /// Splits at each `separator`, which must be one ASCII character.
    package func split(
        separator: Character, maxSplits: Int = .max, omittingEmptySubsequences: Bool = true
    ) -> [Substring] {
        guard let byte = separator.asciiValue else { preconditionFailure("a separator is ASCII") }
        return utf8.split(
            separator: byte, maxSplits: maxSplits, omittingEmptySubsequences: omittingEmptySubsequences
        ).map { Substring($0) }
    }

    package func replacing(_ text: String, with replacement: String) -> String {
        var (output, rest) = ("", self)
        while let range = rest.range(of: text) {
            output += rest[..<range.lowerBound]
            output += replacement
            rest = rest[range.upperBound...]
        }
        return output + rest
    }
}

extension Character {
    package static func == (left: Character, right: Character) -> Bool { left.utf8.elementsEqual(right.utf8) }
    package static func ~= (pattern: Character, character: Character) -> Bool { pattern == character }
}

extension Array<String> {
    package static func == (left: [String], right: [String]) -> Bool {
        left.elementsEqual(right) { $0.hasSameBytes(as: $1) }
    }

    package static func != (left: [String], right: [String]) -> Bool { !(left == right) }

    package func firstIndex(of text: String) -> Int? { firstIndex { $0.hasSameBytes(as: text) } }
}

extension Array<String?> {
    package static func == (left: [String?], right: [String?]) -> Bool {
        left.elementsEqual(right) { $0 == $1 }
    }

    package static func != (left: [String?], right: [String?]) -> Bool { !(left == right) }
}

extension Optional<[String]> {
    package static func == (left: [String]?, right: [String]?) -> Bool {
        switch (left, right) {
        case (let left?, let right?): left == right
        case (nil, nil): true
        default: false
        }
    }

    package static func != (left: [String]?, right: [String]?) -> Bool { !(left == right) }

    package static func == (left: [String]?, right: _OptionalNilComparisonType) -> Bool {
        if case .none = left { true } else { false }
    }

    package static func != (left: [String]?, right: _OptionalNilComparisonType) -> Bool {
        if case .none = left { false } else { true }
    }
}

extension Sequence<String?> {
    package func contains(_ text: String?) -> Bool { contains { $0 == text } }
}

extension Sequence<String> {
    package func contains(_ text: String) -> Bool { contains { $0.hasSameBytes(as: text) } }
    package func sorted() -> [String] { sorted { $0 < $1 } }
    package func min() -> String? { self.min { $0 < $1 } }
    package func max() -> String? { self.max { $0 < $1 } }
}

extension Sequence<Substring> {
    package func contains(_ text: Substring) -> Bool { contains { $0.utf8.elementsEqual(text.utf8) } }
}

extension Hasher {
    package mutating func combine(_ text: String) {
        text.withBytes { combine(bytes: UnsafeRawBufferPointer($0)) }
        // Separates one text from the next in the hash. This byte never occurs in UTF-8.
        combine(0xFF as UInt8)
    }

    package mutating func combine(_ text: String?) {
        guard let text else { return combine(0 as UInt8) }
        combine(1 as UInt8)
        combine(text)
    }

    package mutating func combine(_ texts: [String]) {
        combine(texts.count)
        for text in texts { combine(text) }
    }
}

/// An enumeration that compares its raw values by bytes.
package protocol TextEnum: RawRepresentable, CaseIterable where RawValue == String {}

extension TextEnum {
    package init?(rawValue: String) {
        guard let found = Self.named(rawValue) else { return nil }
        self = found
    }
}

extension CaseIterable where Self: RawRepresentable, RawValue == String {
    /// For public enumerations. `TextEnum` has no public `init(rawValue:)`, so they cannot conform to it.
    package static func named(_ text: String) -> Self? {
        allCases.first { $0.rawValue.hasSameBytes(as: text) }
    }
}

/// Text as a dictionary key that compares by UTF-8 bytes.
package struct BytewiseText: Hashable, Comparable, Sendable {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package static func == (left: Self, right: Self) -> Bool { left.text.hasSameBytes(as: right.text) }
    package static func < (left: Self, right: Self) -> Bool { left.text < right.text }
    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
