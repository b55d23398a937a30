internal import CountersignCore

typealias DistinctIDs = Distinct<BytewiseText>

/// Distinct values in the order of their first occurrence. Takes one hash lookup for each value, because comparing
/// a thousand similar ids pairwise would be slow.
struct Distinct<Value: Hashable> {
    private(set) var values: [Value] = []
    /// Nil while there is at most one value, because most requests have one user.
    private var known: Set<Value>?

    mutating func insert(_ value: Value) {
        if values.last == value { return }
        if known == nil, values.isEmpty {
            values.append(value)
            return
        }
        var known = known ?? Set(values)
        // Releases the second reference, so that inserting does not copy the set.
        self.known = nil
        if known.insert(value).inserted { values.append(value) }
        self.known = known
    }
}

extension Distinct<BytewiseText> {
    var ids: [String] { values.map(\.text) }

    mutating func insert(_ id: String) { insert(BytewiseText(id)) }
}
