/// Header fields that a request may have only once. Of two, one reader would take the first and another the last.
struct SingleFields: Sendable {
    /// By the length of the name, each with a bit of its own.
    private var byLength: [[(name: StaticString, bit: UInt64)]] = []

    private static let standard: [StaticString] = [
        "authorization", "content-encoding", "content-type", "cookie", "dpop", "idempotency-key", "if-match",
        "last-event-id", "origin",
    ]

    /// The standard fields and `names`, which are in lower case.
    init(adding names: [StaticString] = []) {
        for (index, name) in (Self.standard + names).enumerated() {
            while byLength.count <= name.utf8CodeUnitCount { byLength.append([]) }
            byLength[name.utf8CodeUnitCount].append((name, 1 << UInt64(index)))
        }
    }

    /// The name of a field that a request has more than once.
    func repeated(in fields: [HTTPField]) -> StaticString? {
        var seen: UInt64 = 0
        for field in fields where field.nameBytes.count < byLength.count {
            for (name, bit) in byLength[field.nameBytes.count] where field.isNamed(name) {
                if seen & bit != 0 { return name }
                seen |= bit
            }
        }
        return nil
    }
}
