internal import CPostgreSQL
internal import GatewayStorage

struct PostgreSQLRow: SQLRow {
    let result: OpaquePointer
    let index: Int32

    private func bytes(_ column: Int32) -> UnsafeBufferPointer<UInt8> {
        guard let start = PQgetvalue(result, index, column) else {
            return UnsafeBufferPointer(start: nil, count: 0)
        }
        let count = Int(PQgetlength(result, index, column))
        return UnsafeBufferPointer(
            start: UnsafeRawPointer(start).assumingMemoryBound(to: UInt8.self), count: count)
    }

    func isNull(_ column: Int32) -> Bool { PQgetisnull(result, index, column) != 0 }

    /// 0 for NULL, as in SQLite; booleans are 1 or 0.
    func int64(_ column: Int32) -> Int64 {
        let bytes = bytes(column)
        var isNegative = false
        var number: Int64 = 0
        for (place, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                // Accumulates negative numbers, because the minimum has no positive counterpart.
                number = number &* 10 &- Int64(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "-") where place == 0: isNegative = true
            case UInt8(ascii: "t") where place == 0: return 1
            default: return isNegative ? number : -number
            }
        }
        return isNegative ? number : 0 &- number
    }

    func int(_ column: Int32) -> Int { Int(int64(column)) }

    func optionalInt64(_ column: Int32) -> Int64? { isNull(column) ? nil : int64(column) }

    func double(_ column: Int32) -> Double { Double(text(column)) ?? 0 }

    func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

    func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

    func blob(_ column: Int32) -> [UInt8] {
        let bytes = bytes(column)
        guard PQftype(result, column) == ServerType.bytea else { return Array(bytes) }
        guard bytes.count > 2 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: (bytes.count - 2) / 2) { room, count in
            for place in stride(from: 2, to: bytes.count - 1, by: 2) {
                room[count] = Self.digit(bytes[place]) << 4 | Self.digit(bytes[place + 1])
                count += 1
            }
        }
    }

    private static func digit(_ byte: UInt8) -> UInt8 {
        byte <= UInt8(ascii: "9") ? byte &- UInt8(ascii: "0") : (byte | 0x20) &- UInt8(ascii: "a") &+ 10
    }
}
