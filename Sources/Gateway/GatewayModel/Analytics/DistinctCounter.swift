internal import Foundation

/// Estimates the number of different users with 4 KiB of memory (HyperLogLog, 4096 registers, standard error 1.6 %).
/// Small numbers use linear counting.
package struct DistinctCounter: Sendable {
    package static let registers = 4096
    package private(set) var bytes: [UInt8]

    package init() {
        bytes = [UInt8](repeating: 0, count: Self.registers)
    }

    /// Restores stored registers; an empty counter when the size differs.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes.count == Self.registers ? bytes : [UInt8](repeating: 0, count: Self.registers)
    }

    package mutating func add(_ hash: UInt64) {
        let register = Int(hash >> 52)
        let rank = UInt8((hash << 12 | 1 << 11).leadingZeroBitCount + 1)
        if bytes[register] < rank { bytes[register] = rank }
    }

    package mutating func add(_ other: DistinctCounter) {
        for index in bytes.indices { bytes[index] = max(bytes[index], other.bytes[index]) }
    }

    package var count: Int {
        let size = Double(Self.registers)
        let sum = bytes.reduce(0.0) { $0 + pow(2, -Double($1)) }
        let estimate = 0.7213 / (1 + 1.079 / size) * size * size / sum
        let empty = bytes.lazy.filter { $0 == 0 }.count
        if estimate <= 2.5 * size, empty > 0 { return Int((size * log(size / Double(empty))).rounded()) }
        return Int(estimate.rounded())
    }

    /// A hash that stays the same across restarts. It is not cryptographic: a client that chooses user ids can make
    /// the number of users look smaller or larger.
    package static func hash(_ text: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        hash = (hash ^ (hash >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        hash = (hash ^ (hash >> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ (hash >> 33)
    }
}
