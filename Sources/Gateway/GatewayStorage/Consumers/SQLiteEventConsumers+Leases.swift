internal import CountersignCore
internal import CountersignCrypto
package import GatewayModel

extension SQLiteEventConsumers {
    package func lease(
        _ id: EventConsumerID, limit: Int, seconds: Int
    ) throws(ConsumerFailure) -> LeaseOutcome {
        guard let row = try row(id) else {
            leases.withLock { _ = $0.removeValue(forKey: id) }
            throw EventConsumerRules.notFound(id)
        }
        let free = leases.withLock { leases in
            // A seek, also by another process, ends all leases. So does recreating the consumer.
            var table =
                leases[id].flatMap {
                    $0.generation == row.generation && $0.partitions == row.positions.count ? $0 : nil
                } ?? ConsumerLeases(partitions: row.positions.count, generation: row.generation)
            let free = table.available(at: now())
            leases[id] = table
            return free
        }
        var hasMore = false
        var looked = 0
        for partition in free {
            guard looked < EventPage.mostLooked else {
                hasMore = true
                break
            }
            let attempt = try lease(id, partition, limit: limit, seconds: seconds)
            if let lease = attempt.lease { return .leased(lease) }
            hasMore = hasMore || attempt.hasMore
            looked += attempt.looked
        }
        return .nothing(
            hasMore: hasMore, untilExpiry: leases.withLock { $0[id]?.untilExpiry(at: now()) })
    }

    private func lease(
        _ id: EventConsumerID, _ partition: Int, limit: Int, seconds: Int
    ) throws(ConsumerFailure) -> (lease: EventLease?, looked: Int, hasMore: Bool) {
        let isReserved = leases.withLock { leases in
            guard leases[id].map({ partition < $0.partitions }) == true else { return false }
            return leases[id]?.reserve(partition, at: now()) == true
        }
        guard isReserved else { return (nil, 0, false) }
        do throws(ConsumerFailure) {
            // Read after the reservation, because the position cannot change anymore.
            guard let row = try row(id), partition < row.positions.count else {
                throw EventConsumerRules.notFound(id)
            }
            let from = row.positions[partition]
            let following = EventFollowing(
                appID: id.appID, filter: row.settings.filter,
                partition: EventPartition(partition, of: row.positions.count))
            let stretch = try Self.storing { try reader.follow(following, after: from, limit: limit) }
            guard let last = stretch.events.last else {
                // Advances the position, so that these events are not examined again.
                if stretch.looked > 0 {
                    let now = now()
                    try write { table in
                        let isMoved = try table.move(
                            id, partition, from: from, to: stretch.reached, generation: row.generation)
                        if isMoved, stretch.gap.isOpen { try table.rows.noteGap(id, atMilliseconds: now) }
                    }
                }
                leases.withLock { $0[id]?.abandon(partition) }
                return (nil, stretch.looked, stretch.hasMore)
            }
            let lease = ConsumerLeases.Lease(
                id: Base64URL.encode(.random(count: 12)), partition: partition, from: from,
                last: last.sequence, reached: stretch.reached, generation: row.generation,
                deadlineMilliseconds: now() + Milliseconds(seconds: seconds).count)
            leases.withLock { $0[id]?.begin(lease) }
            let given = EventLease(
                id: lease.id, partition: partition, deadlineMilliseconds: lease.deadlineMilliseconds,
                events: stretch.events, reached: stretch.reached,
                gap: stretch.gap.joined(with: row.passedGap))
            return (given, stretch.looked, stretch.hasMore)
        } catch {
            leases.withLock { $0[id]?.abandon(partition) }
            throw error
        }
    }

    package func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 {
        let (found, target) = try leases.withLock {
            leases throws(ConsumerFailure) -> (ConsumerLeases.Lease?, Int64) in
            switch leases[id]?.find(lease) ?? .expired {
            case .expired: throw EventConsumerRules.leaseExpired
            case .busy:
                throw ConsumerFailure(
                    .storage, "the acknowledgement of this lease is still being written; send it again")
            case .settled(let reached): return (nil, reached)
            case .lease(let found):
                let target = sequence.map { $0 >= found.last ? found.reached : $0 } ?? found.reached
                guard sequence.map({ $0 >= found.from && $0 <= found.reached }) ?? true else {
                    throw EventConsumerRules.notInLease
                }
                leases[id]?.settle(found)
                return (found, target)
            }
        }
        guard let found else { return target }
        let isMoved: Bool
        let now = now()
        do throws(ConsumerFailure) {
            isMoved = try write { table in
                let isMoved = try table.move(
                    id, found.partition, from: found.from, to: target, generation: found.generation)
                if isMoved { try table.rows.noteAccepted(id, atMilliseconds: now) }
                return isMoved
            }
        } catch {
            leases.withLock { $0[id]?.fail(found, isOver: false) }
            throw error
        }
        leases.withLock { leases in
            if isMoved {
                leases[id]?.finish(found, at: target)
            } else {
                leases[id]?.fail(found, isOver: true)
            }
        }
        noteChange(of: id)
        guard isMoved else {
            if try row(id) == nil { throw EventConsumerRules.notFound(id) }
            throw EventConsumerRules.leaseExpired
        }
        return target
    }

    package func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        try leases.withLock { leases throws(ConsumerFailure) in
            guard case .lease(let found)? = leases[id]?.find(lease) else {
                throw EventConsumerRules.leaseExpired
            }
            leases[id]?.release(found)
        }
        noteChange(of: id)
    }
}
