internal import CountersignCore

/// Who has which partition of one consumer: the rules, without a clock or a disk.
struct ConsumerLeases {
    /// What somebody has leased.
    struct Lease: Equatable {
        let id: String
        let partition: Int
        /// The position when it was read; moves on when a part is acknowledged.
        var from: Int64
        /// The last event of it, and up to where it was looked.
        let last: Int64
        let reached: Int64
        /// Of the consumer when it was read: after a seek there is another one.
        let generation: Int64
        let deadlineMilliseconds: Int64
    }

    private enum Slot {
        case free
        /// Somebody reads the events that will be leased.
        case reading
        case leased(Lease)
        /// Its acknowledgement is on the way to the disk.
        case settling(Lease)
    }

    /// What a lease may do when it is named.
    enum Found: Equatable {
        case lease(Lease)
        /// It was acknowledged up to here.
        case settled(Int64)
        /// Its acknowledgement is on the way.
        case busy
        case expired
    }

    private var slots: [Slot]
    /// The last lease that was acknowledged, for those that did not hear the answer.
    private var settled: [(id: String, reached: Int64)?]
    private var next = 0
    /// Of the consumer that they are of: after a seek, or when it was made again, there is another one.
    let generation: Int64

    init(partitions: Int, generation: Int64) {
        self.generation = generation
        slots = Array(repeating: .free, count: partitions)
        settled = Array(repeating: nil, count: partitions)
    }

    var partitions: Int { slots.count }

    /// The partitions that nobody has, each time beginning with another one, so that none waits forever.
    mutating func available(at milliseconds: Int64) -> [Int] {
        let start = next
        next = (next + 1) % slots.count
        return (0..<slots.count).map { (start + $0) % slots.count }.filter { isFree($0, at: milliseconds) }
    }

    private func isFree(_ partition: Int, at milliseconds: Int64) -> Bool {
        switch slots[partition] {
        case .free: true
        case .leased(let lease):
            EventConsumerRules.hasEnded(lease.deadlineMilliseconds, at: milliseconds)
        case .reading, .settling: false
        }
    }

    /// Takes a partition to read its events. False when somebody was faster.
    mutating func reserve(_ partition: Int, at milliseconds: Int64) -> Bool {
        guard isFree(partition, at: milliseconds) else { return false }
        slots[partition] = .reading
        return true
    }

    /// Gives a reserved partition back: there was nothing to lease.
    mutating func abandon(_ partition: Int) {
        guard case .reading = slots[partition] else { return }
        slots[partition] = .free
    }

    mutating func begin(_ lease: Lease) {
        guard case .reading = slots[lease.partition] else { return }
        slots[lease.partition] = .leased(lease)
        settled[lease.partition] = nil
    }

    /// Milliseconds until the next lease ends, of those that have not.
    func untilExpiry(at milliseconds: Int64) -> Int64? {
        slots.indices.compactMap { deadline(of: $0, at: milliseconds) }.min().map { $0 - milliseconds }
    }

    func deadline(of partition: Int, at milliseconds: Int64) -> Int64? {
        guard case .leased(let lease) = slots[partition],
            !EventConsumerRules.hasEnded(lease.deadlineMilliseconds, at: milliseconds)
        else { return nil }
        return lease.deadlineMilliseconds
    }

    /// Finds a lease. One that has expired is still there while nobody has leased its partition since.
    func find(_ id: String) -> Found {
        for (partition, slot) in slots.enumerated() {
            switch slot {
            case .leased(let lease) where lease.id == id: return .lease(lease)
            case .settling(let lease) where lease.id == id: return .busy
            default: if let done = settled[partition], done.id == id { return .settled(done.reached) }
            }
        }
        return .expired
    }

    mutating func settle(_ lease: Lease) { slots[lease.partition] = .settling(lease) }

    /// The acknowledgement is on the disk: of all, or up to a number after which the rest stays leased.
    mutating func finish(_ lease: Lease, at sequence: Int64) {
        guard case .settling(lease) = slots[lease.partition] else { return }
        if sequence >= lease.reached {
            slots[lease.partition] = .free
            settled[lease.partition] = (lease.id, sequence)
        } else {
            var rest = lease
            rest.from = sequence
            slots[lease.partition] = .leased(rest)
        }
    }

    /// The acknowledgement failed: the lease is as it was, or it counts no more.
    mutating func fail(_ lease: Lease, isOver: Bool) {
        guard case .settling(lease) = slots[lease.partition] else { return }
        slots[lease.partition] = isOver ? .free : .leased(lease)
    }

    mutating func release(_ lease: Lease) {
        guard case .leased(lease) = slots[lease.partition] else { return }
        slots[lease.partition] = .free
    }
}
