/// The ids of one request, each once by its UTF-8 bytes, in the order of the request.
///
/// One look-up an id, whatever the ids are: a batch may have a thousand that differ in their last byte only.
struct DistinctIDs {
    private struct Key: Hashable {
        let id: String

        static func == (one: Key, other: Key) -> Bool { one.id.utf8.elementsEqual(other.id.utf8) }

        // By bytes: the hash of a string as such is that of its normal form, which takes long to find.
        func hash(into hasher: inout Hasher) {
            var id = id
            id.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        }
    }

    private(set) var ids: [String] = []
    private var known: Set<Key> = []

    mutating func insert(_ id: String) {
        // Most requests speak for one user.
        if let last = ids.last, last.utf8.elementsEqual(id.utf8) { return }
        if known.insert(Key(id: id)).inserted { ids.append(id) }
    }
}
