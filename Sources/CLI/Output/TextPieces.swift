/// Reassembles bytes that arrive in arbitrary pieces.
struct TextPieces {
    private var rest: [UInt8] = []

    /// The lines completed by these bytes, without their ends.
    mutating func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        rest += bytes
        guard let end = rest.lastIndex(of: 0x0A) else { return [] }
        let lines = rest[..<end].split(separator: 0x0A).map(Array.init)
        rest.removeFirst(end + 1)
        return lines
    }

    /// The text up to the last line end in these bytes.
    mutating func whole(_ bytes: [UInt8]) -> String {
        rest += bytes
        guard let end = rest.lastIndex(of: 0x0A) else { return "" }
        let text = String(decoding: rest[...end], as: UTF8.self)
        rest.removeFirst(end + 1)
        return text
    }
}
