/// Deadlines of a loop's connections, which have small numbers.
///
/// A later deadline costs one store: the entry stays in its slot and is moved when the slot is due. Deadlines
/// are reached up to one tick late.
struct TimerWheel {
    /// The length of a tick is a power of two nanoseconds: 134 ms.
    static let tickShift: UInt64 = 27
    private static let slots = 256
    static let never = UInt64.max

    private static let none: Int32 = -1

    private struct Entry {
        var deadline = TimerWheel.never
        /// The tick in which the entry is looked at; `never` for an entry in no slot.
        var tick = TimerWheel.never
        var next = TimerWheel.none
        var previous = TimerWheel.none
    }

    private var entries: ContiguousArray<Entry> = []
    private var first = ContiguousArray(repeating: Self.none, count: Self.slots)
    /// The number of entries in slots.
    private var count = 0
    /// The last tick that was looked at.
    private var current: UInt64

    init(now: UInt64) {
        current = now >> Self.tickShift
    }

    /// Sets the deadline of an entry, in nanoseconds, or removes it with `never`.
    mutating func set(_ index: Int, _ deadline: UInt64) {
        while entries.count <= index { entries.append(Entry()) }
        entries[index].deadline = deadline
        guard deadline != Self.never else { return }
        let tick = max(current + 1, (deadline >> Self.tickShift) + 1)
        guard tick < entries[index].tick else { return }
        unlink(index)
        link(index, min(tick, current + UInt64(Self.slots - 1)))
    }

    /// Appends the entries whose deadlines have passed to `due`, and removes their deadlines.
    mutating func advance(to now: UInt64, _ due: inout ContiguousArray<Int>) {
        let end = now >> Self.tickShift
        guard end > current else { return }
        guard count > 0 else { return current = end }
        // After a long pause each slot is looked at once.
        if end - current > UInt64(Self.slots) { current = end - UInt64(Self.slots) }
        while current < end {
            current += 1
            var index = first[Int(current) & (Self.slots - 1)]
            while index != Self.none {
                let next = entries[Int(index)].next
                look(Int(index), now, &due)
                index = next
            }
        }
    }

    private mutating func look(_ index: Int, _ now: UInt64, _ due: inout ContiguousArray<Int>) {
        unlink(index)
        let deadline = entries[index].deadline
        if deadline <= now {
            entries[index].deadline = Self.never
            due.append(index)
        } else if deadline != Self.never {
            link(
                index,
                min(
                    max(current + 1, (deadline >> Self.tickShift) + 1), current + UInt64(Self.slots - 1)))
        }
    }

    /// Milliseconds until the next slot with entries, or `longest`.
    func milliseconds(at now: UInt64, longest: Int32) -> Int32 {
        guard count > 0 else { return longest }
        for ahead in 1...UInt64(Self.slots) where first[Int(current + ahead) & (Self.slots - 1)] != Self.none
        {
            let due = (current + ahead) << Self.tickShift
            return due <= now ? 0 : min(longest, Int32((due - now) / 1_000_000) + 1)
        }
        return longest
    }

    private mutating func link(_ index: Int, _ tick: UInt64) {
        let slot = Int(tick) & (Self.slots - 1)
        let head = first[slot]
        entries[index].tick = tick
        entries[index].previous = Self.none
        entries[index].next = head
        if head != Self.none { entries[Int(head)].previous = Int32(index) }
        first[slot] = Int32(index)
        count += 1
    }

    private mutating func unlink(_ index: Int) {
        let entry = entries[index]
        guard entry.tick != Self.never else { return }
        if entry.next != Self.none { entries[Int(entry.next)].previous = entry.previous }
        if entry.previous == Self.none {
            first[Int(entry.tick) & (Self.slots - 1)] = entry.next
        } else {
            entries[Int(entry.previous)].next = entry.next
        }
        entries[index].tick = Self.never
        count -= 1
    }
}
