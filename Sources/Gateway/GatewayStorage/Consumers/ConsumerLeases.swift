internal import CountersignCore

/// The leases on the partitions of one consumer: the state machine, without a clock or a disk.
struct ConsumerLeases {
    struct Lease: Equatable {
        let id: String
        let partition: Int
        /// The position when the lease began. A partial acknowledgement advances it.
        var from: Int64
        /// The sequence numbers of the last event and of the last event examined.
        let last: Int64
        let reached: Int64
        /// The consumer's generation when the lease began; a seek changes it.
        let generation: Int64
        let deadlineMilliseconds: Int64
    }

    private enum Slot {
        case free
        /// Reserved while events are read.
        case reading
        case leased(Lease)
        /// The acknowledgement is being committed.
        case settling(Lease)
    }

    /// The state of a lease, found by its id.
    enum Found: Equatable {
        case lease(Lease)
        /// Acknowledged through this sequence number.
        case settled(Int64)
        /// The acknowledgement is being committed.
        case busy
        case expired
    }

    private var slots: [Slot]
    /// The last acknowledged lease of each partition, for retries of the acknowledgement.
    private var settled: [(id: String, reached: Int64)?]
    private var next = 0
    /// The generation of the consumer. It changes after a seek and when the consumer is created again.
    let generation: Int64

    init(partitions: Int, generation: Int64) {
        self.generation = generation
        slots = Array(repeating: .free, count: partitions)
        settled = Array(repeating: nil, count: partitions)
    }

    var partitions: Int { slots.count }

    /// The partitions without a lease. Each call starts at another partition, so that no partition starves.
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

    /// Reserves a partition for reading its events. Returns false when another worker was faster.
    mutating func reserve(_ partition: Int, at milliseconds: Int64) -> Bool {
        guard isFree(partition, at: milliseconds) else { return false }
        slots[partition] = .reading
        return true
    }

    /// Releases a reserved partition without events to lease.
    mutating func abandon(_ partition: Int) {
        guard case .reading = slots[partition] else { return }
        slots[partition] = .free
    }

    mutating func begin(_ lease: Lease) {
        guard case .reading = slots[lease.partition] else { return }
        slots[lease.partition] = .leased(lease)
        settled[lease.partition] = nil
    }

    /// Milliseconds until the first of the active leases expires.
    func untilExpiry(at milliseconds: Int64) -> Int64? {
        slots.indices.compactMap { deadline(of: $0, at: milliseconds) }.min().map { $0 - milliseconds }
    }

    func deadline(of partition: Int, at milliseconds: Int64) -> Int64? {
        guard case .leased(let lease) = slots[partition],
            !EventConsumerRules.hasEnded(lease.deadlineMilliseconds, at: milliseconds)
        else { return nil }
        return lease.deadlineMilliseconds
    }

    /// Finds a lease. An expired lease stays until its partition is leased again.
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

    /// Completes an acknowledgement. After a partial acknowledgement, the rest stays leased.
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

    /// Restores the lease after a failed acknowledgement, or ends it.
    mutating func fail(_ lease: Lease, isOver: Bool) {
        guard case .settling(lease) = slots[lease.partition] else { return }
        slots[lease.partition] = isOver ? .free : .leased(lease)
    }

    mutating func release(_ lease: Lease) {
        guard case .leased(lease) = slots[lease.partition] else { return }
        slots[lease.partition] = .free
    }
}
