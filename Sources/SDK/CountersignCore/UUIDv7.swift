package import Foundation

/// Time-ordered identifiers (RFC 9562, section 5.7), which ascend in one process, also within one millisecond and
/// when the clock is set back.
///
/// The 12 bits after the time are a counter, and the time never goes backwards (section 6.2, method 1). Ids are not
/// secrets, because they can be guessed with effort.
package enum UUIDv7 {
    private struct Last {
        var milliseconds: UInt64 = 0
        var counter: UInt16 = 0
        /// SplitMix64, seeded by the system for every 64 ids, because each seed costs a system call.
        var state: UInt64 = 0
        var left = 0

        mutating func random() -> UInt64 {
            if left == 0 {
                left = 64
                state = UInt64.random(in: 0...UInt64.max)
            }
            left -= 1
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    private static let last = Lock(Last())

    /// 36 lower-case characters.
    package static func make(at date: Date = Date()) -> String {
        let now = UInt64(max(0, Milliseconds(date).count))
        let (milliseconds, counter, random) = last.withLock { last -> (UInt64, UInt16, UInt64) in
            let random = last.random()
            if now > last.milliseconds {
                last.milliseconds = now
                last.counter = UInt16(truncatingIfNeeded: random >> 54)
            } else if last.counter < 0xFFF {
                last.counter += 1
            } else {
                last.milliseconds += 1
                last.counter = 0
            }
            return (last.milliseconds, last.counter, random)
        }
        let high = milliseconds << 16 | 0x7000 | UInt64(counter)
        let low = random & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        return String(unsafeUninitializedCapacity: 36) { buffer in
            var index = 0
            for nibble in 0..<32 {
                if nibble == 8 || nibble == 12 || nibble == 16 || nibble == 20 {
                    buffer[index] = UInt8(ascii: "-")
                    index += 1
                }
                let word = nibble < 16 ? high : low
                let value = UInt8(truncatingIfNeeded: word >> UInt64(60 - nibble % 16 * 4)) & 0xF
                buffer[index] = value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
                index += 1
            }
            return 36
        }
    }
}
