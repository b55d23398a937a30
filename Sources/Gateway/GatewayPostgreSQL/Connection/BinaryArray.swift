internal import Foundation

/// A one-dimensional array in PostgreSQL's binary format.
struct BinaryArray {
    enum Element: UInt32 {
        case int8 = 20
        case int4 = 23
        case text = 25
    }

    private(set) var bytes: [UInt8] = []

    init(_ element: Element, count: Int) {
        append(UInt32(count == 0 ? 0 : 1))
        // The flag for NULL elements, which may be set even if no element is NULL.
        append(1 as UInt32)
        append(element.rawValue)
        guard count > 0 else { return }
        append(UInt32(count))
        append(1 as UInt32)
    }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(bytes.count + count) }

    mutating func add(_ number: Int64?) {
        guard let number else { return append(UInt32.max) }
        append(8 as UInt32)
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ number: Int32?) {
        guard let number else { return append(UInt32.max) }
        append(4 as UInt32)
        append(UInt32(bitPattern: number))
    }

    mutating func add(_ text: String?) {
        guard var text else { return append(UInt32.max) }
        text.withUTF8 { add(UnsafeRawBufferPointer($0)) }
    }

    /// Adds a text. Replaces U+0000 by U+FFFD, as ``Parameters`` does, because PostgreSQL cannot store U+0000.
    mutating func add(_ text: UnsafeRawBufferPointer) {
        if let start = text.baseAddress, memchr(start, 0, text.count) != nil {
            return add(String(decoding: text, as: UTF8.self).holdable)
        }
        append(UInt32(text.count))
        bytes.append(contentsOf: text)
    }

    private mutating func append(_ number: UInt32) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }
}
