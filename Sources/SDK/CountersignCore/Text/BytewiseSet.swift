/// A set of texts that compares by UTF-8 bytes.
package struct BytewiseSet: Collection, Hashable, Sendable, ExpressibleByArrayLiteral {
    package struct Index: Comparable {
        fileprivate let index: Set<BytewiseText>.Index

        package static func < (left: Self, right: Self) -> Bool { left.index < right.index }
    }

    private var members: Set<BytewiseText>

    private init(members: Set<BytewiseText>) {
        self.members = members
    }

    package init() {
        self.init(members: [])
    }

    package init(_ texts: some Sequence<String>) {
        self.init(members: Set(texts.lazy.map { BytewiseText($0) }))
    }

    package init(arrayLiteral texts: String...) {
        self.init(texts)
    }

    package func contains(_ text: String) -> Bool { members.contains(BytewiseText(text)) }

    @discardableResult
    package mutating func insert(_ text: String) -> (inserted: Bool, memberAfterInsert: String) {
        let result = members.insert(BytewiseText(text))
        return (result.inserted, result.memberAfterInsert.text)
    }

    @discardableResult
    package mutating func remove(_ text: String) -> String? { members.remove(BytewiseText(text))?.text }

    package mutating func formUnion(_ texts: some Sequence<String>) {
        for text in texts { insert(text) }
    }

    package mutating func subtract(_ texts: some Sequence<String>) {
        for text in texts { remove(text) }
    }

    package func union(_ texts: some Sequence<String>) -> Self {
        var union = self
        union.formUnion(texts)
        return union
    }

    package func isSubset(of other: Self) -> Bool { members.isSubset(of: other.members) }

    package var startIndex: Index { Index(index: members.startIndex) }
    package var endIndex: Index { Index(index: members.endIndex) }
    package var count: Int { members.count }
    package func index(after index: Index) -> Index { Index(index: members.index(after: index.index)) }
    package subscript(position: Index) -> String { members[position.index].text }
}
