internal import CountersignCore
internal import CountersignCrypto
package import GatewayModel
package import GatewayStorage

extension PostgreSQLEventConsumers {
    package func lease(
        _ id: EventConsumerID, limit: Int, seconds: Int
    ) throws(ConsumerFailure) -> LeaseOutcome {
        let (count, free) = try read { connection in
            guard let row = try EventConsumerTable(connection: connection).row(id) else {
                throw EventConsumerRules.notFound(id)
            }
            let now = try clock.now(connection)
            return (
                row.partitions.count,
                row.partitions.indices.filter { row.partitions[$0].isFree(at: now) }
            )
        }
        // Starts at a random partition, so that no partition starves.
        let start = Int.random(in: 0..<max(1, count))
        var hasMore = false
        var looked = 0
        for partition in free.filter({ $0 >= start }) + free.filter({ $0 < start }) {
            guard looked < EventPage.mostLooked else {
                hasMore = true
                break
            }
            let attempt = try write { connection in
                try lease(id, partition, limit: limit, seconds: seconds, connection)
            }
            if let lease = attempt.lease { return .leased(lease) }
            hasMore = hasMore || attempt.hasMore
            looked += attempt.looked
        }
        let expiry = try read { connection in
            let now = try clock.now(connection)
            return try EventConsumerTable(connection: connection).row(id)?.partitions
                .compactMap { $0.lease(at: now) }.min().map { $0 - now }
        }
        return .nothing(hasMore: hasMore, untilExpiry: expiry)
    }

    /// Leases the next events of one partition, if it is free.
    private func lease(
        _ id: EventConsumerID, _ partition: Int, limit: Int, seconds: Int, _ connection: PostgreSQLConnection
    ) throws -> (lease: EventLease?, looked: Int, hasMore: Bool) {
        let rows = EventConsumerTable(connection: connection)
        guard try rows.reserve(partition, of: id) else { return (nil, 0, false) }
        // Read after the reservation, because no other worker can now read from the position.
        guard let row = try rows.row(id), partition < row.partitions.count else {
            throw EventConsumerRules.notFound(id)
        }
        let now = try clock.now(connection)
        let from = row.partitions[partition].position
        guard row.partitions[partition].isFree(at: now) else { return (nil, 0, false) }
        let following = EventFollowing(
            appID: id.appID, filter: row.settings.filter,
            partition: EventPartition(partition, of: row.partitions.count))
        let stretch = try PostgreSQLEventLog.follow(following, after: from, limit: limit, connection)
        guard let last = stretch.events.last else {
            // Advances the position, so that these events are not examined again.
            if stretch.looked > 0 {
                try rows.pass(
                    partition, of: id, from: from, to: stretch.reached, gap: stretch.gap, at: now)
            }
            return (nil, stretch.looked, stretch.hasMore)
        }
        let lease = EventLease(
            id: Base64URL.encode(.random(count: 12)), partition: partition,
            deadlineMilliseconds: now + Milliseconds(seconds: seconds).count, events: stretch.events,
            reached: stretch.reached, gap: stretch.gap.joined(with: row.passedGap))
        let isLeased = try rows.lease(
            lease.id, partition, of: id, from: from, last: last.sequence, reached: lease.reached,
            until: lease.deadlineMilliseconds, at: now)
        return (isLeased ? lease : nil, stretch.looked, stretch.hasMore)
    }

    package func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 {
        let target = try write { connection in
            let rows = EventConsumerTable(connection: connection)
            guard try rows.holds(id) else { throw EventConsumerRules.notFound(id) }
            guard let found = try rows.find(lease, of: id) else { throw EventConsumerRules.leaseExpired }
            if let settled = found.settled { return settled }
            guard sequence.map({ $0 >= found.position && $0 <= found.reached }) ?? true else {
                throw EventConsumerRules.notInLease
            }
            let target = sequence.map { $0 >= found.last ? found.reached : $0 } ?? found.reached
            try rows.settle(lease, found, of: id, through: target, at: try clock.now(connection))
            return target
        }
        noteChange(of: id)
        return target
    }

    package func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        let isReleased = try write { try EventConsumerTable(connection: $0).release(lease, of: id) }
        guard isReleased else { throw EventConsumerRules.leaseExpired }
        noteChange(of: id)
    }
}
