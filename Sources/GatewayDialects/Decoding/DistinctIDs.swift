internal import CountersignCore

/// The ids of one request.
typealias DistinctIDs = Distinct<BytewiseText>

/// Values, each once, in the order in which they first came.
///
/// One look-up a value, whatever the values are: a batch may have a thousand ids that differ in their last byte only.
struct Distinct<Value: Hashable> {
    private(set) var values: [Value] = []
    /// Nil while there is one value at most: most requests speak for one user.
    private var known: Set<Value>?

    mutating func insert(_ value: Value) {
        if values.last == value { return }
        if known == nil, values.isEmpty {
            values.append(value)
            return
        }
        var known = known ?? Set(values)
        // Only one of the two may have the table, or it is copied.
        self.known = nil
        if known.insert(value).inserted { values.append(value) }
        self.known = known
    }
}

extension Distinct<BytewiseText> {
    var ids: [String] { values.map(\.text) }

    mutating func insert(_ id: String) { insert(BytewiseText(id)) }
}
