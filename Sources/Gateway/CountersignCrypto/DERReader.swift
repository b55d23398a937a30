/// Reads the DER structures (X.690) of public keys: definite lengths in shortest form.
package struct DERReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    package var isAtEnd: Bool { position == bytes.endIndex }

    package static let integer: UInt8 = 0x02
    package static let bitString: UInt8 = 0x03
    package static let null: UInt8 = 0x05
    package static let objectIdentifier: UInt8 = 0x06
    package static let sequence: UInt8 = 0x30

    /// Returns the content of the next value; nil if the value has another tag or is malformed.
    package mutating func read(_ tag: UInt8) -> ArraySlice<UInt8>? {
        guard position + 1 < bytes.endIndex, bytes[position] == tag else { return nil }
        var start = position + 2
        var length = Int(bytes[position + 1])
        if length >= 0x80 {
            let octets = length & 0x7F
            guard (1...3).contains(octets), bytes.endIndex - start >= octets else { return nil }
            length = bytes[start..<start + octets].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 0x80, length >= 1 << (8 * (octets - 1)) else { return nil }
            start += octets
        }
        guard bytes.endIndex - start >= length else { return nil }
        position = start + length
        return bytes[start..<position]
    }

    /// Returns a non-negative INTEGER without leading zeros; nil for any other value.
    package mutating func readUnsigned() -> [UInt8]? {
        guard let content = read(Self.integer), let first = content.first, first & 0x80 == 0 else {
            return nil
        }
        return Array(content.drop { $0 == 0 })
    }

    /// Returns the octets of a BIT STRING; nil if it has unused bits or the next value has another tag.
    package mutating func readOctetBitString() -> ArraySlice<UInt8>? {
        guard let content = read(Self.bitString), content.first == 0 else { return nil }
        return content.dropFirst()
    }
}
