/// A dictionary that compares its keys by their UTF-8 bytes.
///
/// A `Dictionary` treats "ä" as one code point and "ä" as two code points as the same key.
public struct BytewiseDictionary<Value>: Collection, ExpressibleByDictionaryLiteral {
    /// A position in a dictionary. Valid until the dictionary changes.
    public struct Index: Comparable {
        fileprivate let index: [BytewiseText: Value].Index

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public static func < (left: Self, right: Self) -> Bool { left.index < right.index }
    }

    private var entries: [BytewiseText: Value]

    private init(entries: [BytewiseText: Value]) {
        self.entries = entries
    }

    /// An empty dictionary.
    public init() {
        self.init(entries: [:])
    }

    /// Creates a dictionary. If a key occurs twice, the last value is used.
    public init(dictionaryLiteral elements: (String, Value)...) {
        self.init(elements, uniquingKeysWith: { $1 })
    }

    /// Creates a dictionary with the keys and values of a `Dictionary`.
    public init(_ dictionary: [String: Value]) {
        self.init(dictionary.lazy.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }

    /// `combine` chooses the value of a key that occurs twice.
    package init(
        _ elements: some Sequence<(String, Value)>, uniquingKeysWith combine: (Value, Value) throws -> Value
    ) rethrows {
        self.init(
            entries: try Dictionary(
                elements.lazy.map { (BytewiseText($0.0), $0.1) }, uniquingKeysWith: combine))
    }

    /// The keys, in no particular order.
    public var keys: some Collection<String> { entries.keys.lazy.map(\.text) }

    /// The values, in the order of `keys`.
    public var values: some Collection<Value> { entries.values }

    /// The value of a key. Setting nil removes the key.
    public subscript(key: String) -> Value? {
        get { entries[BytewiseText(key)] }
        _modify { yield &entries[BytewiseText(key)] }
    }

    package subscript(key: String, default value: @autoclosure () -> Value) -> Value {
        get { entries[BytewiseText(key)] ?? value() }
        _modify { yield &entries[BytewiseText(key), default: value()] }
    }

    @discardableResult
    package mutating func removeValue(forKey key: String) -> Value? {
        entries.removeValue(forKey: BytewiseText(key))
    }

    /// `combine` chooses the value of a key that both dictionaries have.
    package mutating func merge(_ other: Self, uniquingKeysWith combine: (Value, Value) throws -> Value)
        rethrows
    {
        try entries.merge(other.entries, uniquingKeysWith: combine)
    }

    /// `combine` chooses the value of a key that both dictionaries have.
    package func merging(
        _ other: Self, uniquingKeysWith combine: (Value, Value) throws -> Value
    ) rethrows -> Self {
        Self(entries: try entries.merging(other.entries, uniquingKeysWith: combine))
    }

    package func mapValues<New>(_ transform: (Value) throws -> New) rethrows -> BytewiseDictionary<New> {
        BytewiseDictionary<New>(entries: try entries.mapValues(transform))
    }

    package func compactMapValues<New>(_ transform: (Value) throws -> New?) rethrows -> BytewiseDictionary<
        New
    > {
        BytewiseDictionary<New>(entries: try entries.compactMapValues(transform))
    }

    package func filter(_ isIncluded: (Element) throws -> Bool) rethrows -> Self {
        Self(entries: try entries.filter { try isIncluded(($0.key.text, $0.value)) })
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var startIndex: Index { Index(index: entries.startIndex) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var endIndex: Index { Index(index: entries.endIndex) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public var count: Int { entries.count }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func index(after index: Index) -> Index { Index(index: entries.index(after: index.index)) }
    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public subscript(position: Index) -> (key: String, value: Value) {
        let entry = entries[position.index]
        return (entry.key.text, entry.value)
    }
}

extension BytewiseDictionary {
    package init(uniqueKeysWithValues elements: some Sequence<(String, Value)>) {
        self.init(
            entries: Dictionary(uniqueKeysWithValues: elements.lazy.map { (BytewiseText($0.0), $0.1) }))
    }

    package init<Member>(grouping members: some Sequence<Member>, by key: (Member) throws -> String) rethrows
    where Value == [Member] {
        self.init(entries: try Dictionary(grouping: members) { BytewiseText(try key($0)) })
    }

    @discardableResult
    package mutating func updateValue(_ value: Value, forKey key: String) -> Value? {
        entries.updateValue(value, forKey: BytewiseText(key))
    }
}

extension Dictionary where Key == String {
    /// Of several keys with the same canonical form, only one is used.
    package init(_ dictionary: BytewiseDictionary<Value>) {
        self.init(dictionary.lazy.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
    }
}

extension BytewiseDictionary: Equatable where Value: Equatable {}
extension BytewiseDictionary: Hashable where Value: Hashable {}
extension BytewiseDictionary: Sendable where Value: Sendable {}

extension BytewiseDictionary: CustomStringConvertible {
    /// The text that a `Dictionary` prints, sorted by key.
    public var description: String {
        let entries = entries.sorted { $0.key < $1.key }
        guard !entries.isEmpty else { return "[:]" }
        return "["
            + entries.map { "\(String(reflecting: $0.key.text)): \(String(reflecting: $0.value))" }
            .joined(separator: ", ") + "]"
    }
}
