/// Bytes that come in pieces which end anywhere.
struct TextPieces {
    private var rest: [UInt8] = []

    /// The whole lines that there are with these bytes, without their ends.
    mutating func lines(_ bytes: [UInt8]) -> [[UInt8]] {
        rest += bytes
        guard let end = rest.lastIndex(of: 0x0A) else { return [] }
        let lines = rest[..<end].split(separator: 0x0A).map(Array.init)
        rest.removeFirst(end + 1)
        return lines
    }

    /// The text up to the last line end that there is with these bytes.
    mutating func whole(_ bytes: [UInt8]) -> String {
        rest += bytes
        guard let end = rest.lastIndex(of: 0x0A) else { return "" }
        let text = String(decoding: rest[...end], as: UTF8.self)
        rest.removeFirst(end + 1)
        return text
    }
}
