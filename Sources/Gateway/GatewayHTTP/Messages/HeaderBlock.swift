/// The header fields of a request, in memory of the server or of this block.
package struct HeaderBlock {
    let all: [HTTPField]
    /// The memory of the fields; nil if the fields point into the server's memory.
    private let own: Memory?

    init(borrowing fields: [HTTPField]) {
        all = fields
        own = nil
    }

    package init(_ fields: [(name: String, value: String)]) {
        let memory = Memory(count: fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count })
        all = fields.map {
            HTTPField(nameBytes: memory.append($0.name.utf8), valueBytes: memory.append($0.value.utf8))
        }
        own = memory
    }

    func copy() -> HeaderBlock { HeaderBlock(copying: all) }

    private init(copying fields: [HTTPField]) {
        let memory = Memory(count: fields.reduce(0) { $0 + $1.nameBytes.count + $1.valueBytes.count })
        all = fields.map {
            HTTPField(nameBytes: memory.append($0.nameBytes), valueBytes: memory.append($0.valueBytes))
        }
        own = memory
    }

    func first(_ name: StaticString) -> UnsafeBufferPointer<UInt8>? {
        for field in all where field.isNamed(name) { return field.valueBytes }
        return nil
    }

    private final class Memory {
        private let bytes: UnsafeMutableBufferPointer<UInt8>
        private var end = 0

        init(count: Int) {
            bytes = .allocate(capacity: count)
        }

        deinit {
            bytes.deallocate()
        }

        func append(_ part: some Collection<UInt8>) -> UnsafeBufferPointer<UInt8> {
            let place = UnsafeMutableBufferPointer(rebasing: bytes[end..<end + part.count])
            _ = place.update(fromContentsOf: part)
            end += part.count
            return UnsafeBufferPointer(place)
        }
    }
}

/// One header field as received. Points into memory of the server or of a ``HeaderBlock``.
package struct HTTPField {
    let nameBytes: UnsafeBufferPointer<UInt8>
    let valueBytes: UnsafeBufferPointer<UInt8>

    /// The value with U+001A for each non-ASCII byte. No field that the gateway reads needs these bytes, and no field
    /// can contain U+001A itself. Swift splits and compares ASCII text faster.
    package var value: String { Self.text(valueBytes) }

    static func text(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: bytes.map { $0 < 0x80 ? $0 : 0x1A }, as: UTF8.self)
    }

    /// Whether the field has this lower-case name. Ignores ASCII case (RFC 9110, section 5.1).
    func isNamed(_ name: StaticString) -> Bool {
        HTTPSyntax.matches(UnsafeRawBufferPointer(nameBytes), name)
    }
}
