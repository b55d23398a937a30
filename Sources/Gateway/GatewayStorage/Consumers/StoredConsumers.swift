internal import CountersignCore
internal import CountersignCrypto
package import GatewayModel

/// Consumers in the database of any engine, next to the events.
package struct StoredConsumers<Engine: ConsumerEngine>: EventConsumers {
    package let engine: Engine

    package init(_ engine: Engine) {
        self.engine = engine
    }

    // MARK: The list

    package func create(
        _ id: EventConsumerID, _ settings: EventConsumerSettings, from start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        try EventConsumerRules.check(id, settings)
        let sequence = try sequence(of: start, in: id.appID)
        try engine.write { [engine] connection in
            let rows = ConsumerRows(connection)
            try engine.lockList(of: id.appID, connection)
            if try rows.row(id) != nil { throw EventConsumerRules.exists(id) }
            guard try rows.count(id.kind, of: id.appID) < EventConsumerRules.mostOfApp else {
                throw EventConsumerRules.tooMany
            }
            let isNew = try rows.insert(
                id, settings, at: sequence, generation: Engine.generation,
                milliseconds: try engine.now(connection))
            guard isNew else { throw EventConsumerRules.exists(id) }
        }
        return try find(id)
    }

    package func all(
        _ kind: EventConsumerID.Kind, of appID: String?
    ) throws(ConsumerFailure) -> [EventConsumer] {
        try engine.read { connection in
            try ConsumerRows(connection).ids(kind, of: appID).compactMap { try consumer($0, connection) }
        }
    }

    package func find(_ id: EventConsumerID) throws(ConsumerFailure) -> EventConsumer {
        guard let found = try engine.read({ try consumer(id, $0) }) else {
            throw EventConsumerRules.notFound(id)
        }
        return found
    }

    private func row(_ id: EventConsumerID, _ connection: Engine.Connection) throws -> ConsumerRows.Row {
        guard let row = try ConsumerRows(connection).row(id, generation: Engine.generation) else {
            throw EventConsumerRules.notFound(id)
        }
        return row
    }

    private func consumer(_ id: EventConsumerID, _ connection: Engine.Connection) throws -> EventConsumer? {
        let rows = ConsumerRows(connection)
        guard let row = try rows.row(id, generation: Engine.generation) else { return nil }
        let floor = try EventFloor.read(of: id.appID, connection)
        var unread: [Int64: (count: Int, oldestMilliseconds: Int64?)] = [:]
        for position in row.positions where unread[position] == nil {
            unread[position] = try engine.unread(of: id.appID, after: max(position, floor), connection)
        }
        let (count, behind) = (
            row.positions.count, row.positions.reduce(0) { $0 + (unread[$1]?.count ?? 0) }
        )
        let least = row.positions.min() ?? 0
        let gap = EventGap(after: least, floor: floor).of(id.kind, after: least)
        return EventConsumer(
            id: id, settings: row.settings, createdMilliseconds: row.createdMilliseconds,
            partitions: zip(row.positions, try engine.deadlines(of: row, connection)).map {
                EventConsumer.Partition(committed: $0, leasedUntilMilliseconds: $1)
            },
            lag: (behind + count - 1) / max(1, count),
            oldestUnreadMilliseconds: unread[least]?.oldestMilliseconds,
            gap: row.passedGaps.reduce(gap) { $0.joined(with: $1) })
    }

    package func seek(
        _ id: EventConsumerID, to start: EventStart
    ) throws(ConsumerFailure) -> EventConsumer {
        let sequence = try sequence(of: start, in: id.appID)
        try engine.write { [engine] connection in
            let rows = ConsumerRows(connection)
            // Locks the consumer before its positions, as acknowledgements do. Another order could deadlock.
            guard try rows.isThere(id) else { throw EventConsumerRules.notFound(id) }
            try engine.endLeases(of: id, connection)
            try rows.setPositions(of: id, to: sequence)
            try rows.noteMoved(id)
        }
        engine.leasesEnded(of: id)
        return try find(id)
    }

    package func delete(_ id: EventConsumerID) throws(ConsumerFailure) {
        let isThere = try engine.write { try ConsumerRows($0).delete(id) }
        engine.leasesEnded(of: id)
        if !isThere { throw EventConsumerRules.notFound(id) }
    }

    package func sequence(of start: EventStart, in appID: String) throws(ConsumerFailure) -> Int64 {
        try engine.read { connection in
            let floor = try EventFloor.read(of: appID, connection)
            return switch start {
            case .start: floor
            case .end: try engine.head(connection)
            case .time(let milliseconds):
                try max(floor, engine.sequence(before: milliseconds, of: appID, after: floor, connection))
            case .after(let sequence): min(sequence, try engine.head(connection))
            }
        }
    }

    // MARK: Progress of ways

    package func progress(
        _ kind: EventConsumerID.Kind
    ) throws(ConsumerFailure) -> [EventConsumerID: DeliveryProgress] {
        try engine.read { try ConsumerRows($0).progress(kind) }
    }

    package func follow(
        _ id: EventConsumerID, holdDays: Int?, from progress: DeliveryProgress?
    ) throws(ConsumerFailure) {
        try engine.write { [engine] connection in
            let rows = ConsumerRows(connection)
            if let progress {
                _ = try rows.insert(
                    id, EventConsumerSettings(), at: progress.committed, generation: Engine.generation,
                    milliseconds: try engine.now(connection))
                try rows.keep(progress, of: id)
            }
            try rows.setHold(holdDays, of: id)
        }
    }

    package func keep(_ progress: [EventConsumerID: DeliveryProgress]) throws(ConsumerFailure) {
        try engine.write { connection in
            // Sorted, so that two gateways lock rows in the same order and cannot deadlock.
            for (id, progress) in progress.sorted(by: { $0.key < $1.key }) {
                try ConsumerRows(connection).keep(progress, of: id)
            }
        }
    }

    // MARK: Leases

    package func lease(
        _ id: EventConsumerID, limit: Int, seconds: Int
    ) throws(ConsumerFailure) -> LeaseOutcome {
        let (row, deadlines) = try engine.read { connection -> (ConsumerRows.Row, [Int64?]) in
            let row = try self.row(id, connection)
            return (row, try engine.deadlines(of: row, connection))
        }
        // In random order, so that no partition starves.
        let free: [Int] = deadlines.indices.filter { deadlines[$0] == nil }.shuffled()
        var (hasMore, scanned) = (false, 0)
        for partition in free {
            guard scanned < EventPage.maximumScanned else {
                hasMore = true
                break
            }
            let attempt = try engine.lease(partition, of: row) { connection in
                try self.attempt(partition, of: id, limit: limit, seconds: seconds, connection)
            }
            guard let attempt else { continue }
            if let lease = attempt.lease { return .leased(lease) }
            hasMore = hasMore || attempt.range.hasMore
            scanned += attempt.range.scanned
        }
        let expiry = try engine.read { connection -> Int64? in
            let now = try engine.now(connection)
            return try engine.deadlines(of: row, connection).compactMap { $0 }.min().map { $0 - now }
        }
        return .nothing(hasMore: hasMore, untilExpiry: expiry)
    }

    private func attempt(
        _ partition: Int, of id: EventConsumerID, limit: Int, seconds: Int, _ connection: Engine.Connection
    ) throws -> LeaseAttempt {
        // Reads the row after the reservation, which prevents other workers from changing the position.
        let row = try self.row(id, connection)
        guard partition < row.positions.count else { throw EventConsumerRules.notFound(id) }
        let query = EventQuery(
            appID: id.appID, filter: row.settings.filter,
            partition: EventPartition(partition, of: row.positions.count))
        let from = row.positions[partition]
        let range = try engine.follow(query, after: from, limit: limit, connection)
        var attempt = LeaseAttempt(from: from, generation: row.generation, range: range)
        guard !range.events.isEmpty else { return attempt }
        attempt.lease = EventLease(
            id: Base64URL.encode(.random(count: 12)), partition: partition,
            deadlineMilliseconds: try engine.now(connection) + Milliseconds(seconds: seconds).count,
            events: range.events, scannedThrough: range.scannedThrough,
            gap: range.gap.joined(with: row.passedGaps[partition]))
        return attempt
    }

    package func acknowledge(
        _ lease: String, of id: EventConsumerID, through sequence: Int64?
    ) throws(ConsumerFailure) -> Int64 {
        try engine.acknowledge(lease, of: id, through: sequence)
    }

    package func release(_ lease: String, of id: EventConsumerID) throws(ConsumerFailure) {
        try engine.release(lease, of: id)
    }
}
