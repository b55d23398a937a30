/// The deadlines of a loop's connections. Setting a deadline only writes it to an array. Once the earliest deadline may
/// have passed, all deadlines are compared with the time. The next comparison is usually at least 134 ms later.
struct Deadlines {
    static let never = UInt64.max
    static let pause: UInt64 = 1 << 27

    private var all: ContiguousArray<UInt64> = []
    /// The time of the next comparison.
    private var earliest = never

    /// Sets a deadline in nanoseconds, or removes it with `never`.
    mutating func set(_ index: Int, _ deadline: UInt64) {
        while all.count <= index { all.append(Self.never) }
        all[index] = deadline
        earliest = min(earliest, deadline)
    }

    /// Removes the deadlines that have passed, and appends their connections to `due`.
    mutating func take(at now: UInt64, _ due: inout ContiguousArray<Int>) {
        guard now >= earliest else { return }
        var next = Self.never
        for index in all.indices {
            if all[index] <= now {
                all[index] = Self.never
                due.append(index)
            } else {
                next = min(next, all[index])
            }
        }
        earliest = max(next, now + Self.pause)
        if next == Self.never { earliest = Self.never }
    }

    /// Milliseconds until a deadline may pass, at most `longest`.
    func milliseconds(at now: UInt64, longest: Int32) -> Int32 {
        if earliest <= now { return 0 }
        return Int32(min(UInt64(longest), (earliest - now) / 1_000_000 + 1))
    }
}
