/// Reassembles lines from bytes that arrive in arbitrary pieces.
struct LineBuffer {
    private var rest: [UInt8] = []

    /// The lines completed by these bytes, without line ends and without empty lines.
    mutating func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        whole(bytes).split(separator: 0x0A).map(Array.init)
    }

    /// The bytes not yet returned, up to and including the last line end.
    mutating func whole(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        rest += bytes
        guard let end = rest.lastIndex(of: 0x0A) else { return [] }
        defer { rest.removeFirst(end + 1) }
        return rest[...end]
    }
}
