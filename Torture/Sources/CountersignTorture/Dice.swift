internal import Foundation

/// Random numbers of a scenario. A number in PROVE_SEED repeats them.
///
/// Processes and threads still run at their own pace, so a seed repeats the decisions, and not the moments at
/// which they take effect.
struct Dice: RandomNumberGenerator {
    private static let lock = NSLock()
    // `lock` guards it.
    nonisolated(unsafe) private static var state =
        ProcessInfo.processInfo.environment["PROVE_SEED"].flatMap(UInt64.init)
        ?? .random(in: 0...UInt64.max)

    /// SplitMix64.
    mutating func next() -> UInt64 {
        let state = Self.lock.withLock {
            Self.state &+= 0x9E37_79B9_7F4A_7C15
            return Self.state
        }
        let mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        let last = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return last ^ (last >> 31)
    }
}

/// A new value for each use, so that several threads may use it.
var dice: Dice {
    get { Dice() }
    set {}
}
