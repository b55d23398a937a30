internal import CountersignCore

/// The leases on the partitions of one consumer: the state machine, without a clock or a disk.
struct ConsumerLeases {
    private enum Slot {
        case free
        /// Reserved while events are read.
        case reading
        case leased(HeldLease, until: Int64)
        /// The acknowledgement is being committed.
        case acknowledging(HeldLease, until: Int64)
    }

    /// The state of a lease, found by its id.
    enum Found: Equatable {
        case lease(HeldLease)
        /// Acknowledged through this sequence number.
        case acknowledged(Int64)
        /// The acknowledgement is being committed.
        case busy
        case expired
    }

    private var slots: [Slot]
    /// The acknowledged lease of each partition until its next lease, for retries of the acknowledgement.
    private var acknowledged: [(id: String, position: Int64)?]
    /// The generation of the consumer. It changes after a seek and when the consumer is created again.
    let generation: Int64

    init(partitions: Int, generation: Int64) {
        self.generation = generation
        slots = Array(repeating: .free, count: partitions)
        acknowledged = Array(repeating: nil, count: partitions)
    }

    /// False after a seek, or after the consumer was deleted and created again.
    func isValid(for row: ConsumerRows.Row) -> Bool {
        generation == row.generation && slots.count == row.positions.count
    }

    /// Reserves a partition for reading its events. Returns false if it is reserved or leased.
    mutating func reserve(_ partition: Int, at milliseconds: Int64) -> Bool {
        switch slots[partition] {
        case .free: break
        case .leased: if deadline(of: partition, at: milliseconds) != nil { return false }
        case .reading, .acknowledging: return false
        }
        slots[partition] = .reading
        return true
    }

    /// Releases a reserved partition without events to lease.
    mutating func abandon(_ partition: Int) {
        guard case .reading = slots[partition] else { return }
        slots[partition] = .free
    }

    /// Begins a lease of a reserved partition. Returns false if the partition is not reserved.
    mutating func begin(_ lease: HeldLease, until deadline: Int64) -> Bool {
        guard case .reading = slots[lease.partition] else { return false }
        slots[lease.partition] = .leased(lease, until: deadline)
        acknowledged[lease.partition] = nil
        return true
    }

    /// The deadline of a partition's unexpired lease. Nil without one, or while an acknowledgement is being committed.
    func deadline(of partition: Int, at milliseconds: Int64) -> Int64? {
        guard case .leased(_, let deadline) = slots[partition],
            !EventConsumerRules.hasEnded(deadline, at: milliseconds)
        else { return nil }
        return deadline
    }

    /// Finds a lease. An expired lease stays until its partition is reserved again.
    func find(_ id: String) -> Found {
        for (partition, slot) in slots.enumerated() {
            switch slot {
            case .leased(let lease, _) where lease.id == id: return .lease(lease)
            case .acknowledging(let lease, _) where lease.id == id: return .busy
            default:
                if let done = acknowledged[partition], done.id == id { return .acknowledged(done.position) }
            }
        }
        return .expired
    }

    mutating func acknowledge(_ lease: HeldLease) {
        guard case .leased(lease, let deadline) = slots[lease.partition] else { return }
        slots[lease.partition] = .acknowledging(lease, until: deadline)
    }

    /// Completes an acknowledgement. After a partial acknowledgement, the later events stay leased.
    mutating func finish(_ lease: HeldLease, at sequence: Int64) {
        guard case .acknowledging(lease, let deadline) = slots[lease.partition] else { return }
        if sequence >= lease.scannedThrough {
            slots[lease.partition] = .free
            acknowledged[lease.partition] = (lease.id, sequence)
        } else {
            var rest = lease
            rest.from = sequence
            slots[lease.partition] = .leased(rest, until: deadline)
        }
    }

    /// Restores the lease after a failed acknowledgement, or ends the lease if `isOver`.
    mutating func fail(_ lease: HeldLease, isOver: Bool) {
        guard case .acknowledging(lease, let deadline) = slots[lease.partition] else { return }
        slots[lease.partition] = isOver ? .free : .leased(lease, until: deadline)
    }

    mutating func release(_ lease: HeldLease) {
        guard case .leased(lease, _) = slots[lease.partition] else { return }
        slots[lease.partition] = .free
    }
}
