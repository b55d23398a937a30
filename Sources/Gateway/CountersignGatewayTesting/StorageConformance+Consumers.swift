internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

extension StorageConformance {
    static let ofConsumers = [
        StorageConformance(
            description: "a consumer reads each event once, from its start position", body: consumersRead),
        StorageConformance(
            description: "a consumer starts at a time that follows many events",
            body: aTimeIsFoundBehindManyEvents),
        StorageConformance(
            description: "leased events are not leased again until the lease ends", body: leasesAreExclusive),
        StorageConformance(
            description: "a user's events stay in order with any number of partitions",
            body: partitionsKeepOrder),
        StorageConformance(
            description: "a seek ends all leases, and kinds of consumers are independent", body: seeking),
        StorageConformance(
            description: "acknowledged positions survive a restart", body: positionsSurviveARestart),
        StorageConformance(
            description: "a restored backup has acknowledged positions and rejects positions of the original",
            restoring: positionsAreCopied),
        StorageConformance(
            description: "a consumer advances over events that its filter skips",
            body: positionsPassFilteredEvents),
        StorageConformance(
            description: "retention keeps unread events for a limited time", body: retentionWaits),
        StorageConformance(
            description: "a consumer that skips a gap is reported again when it misses later events",
            body: laterGapsAreReported),
        StorageConformance(
            description: "each partition reports a gap until it is acknowledged there",
            body: partitionsReportGaps),
    ]

    /// A manual clock in milliseconds since 1970.
    private final class Clock: Sendable {
        private let milliseconds = Lock<Int64>(1_000_000)
        var now: @Sendable () -> Int64 { { self.milliseconds.withLock { $0 } } }
        func advance(seconds: Int64) { milliseconds.withLock { $0 += seconds * 1_000 } }
    }

    private static func code(_ body: () throws -> Void) throws -> ConsumerFailure.Code? {
        do {
            try body()
            return nil
        } catch let failure as ConsumerFailure {
            return failure.code
        }
    }

    private static func leased(
        _ consumers: any EventConsumers, _ id: EventConsumerID, limit: Int = 100, seconds: Int = 60
    ) throws -> EventLease? {
        if case .leased(let lease) = try consumers.lease(id, limit: limit, seconds: seconds) { return lease }
        return nil
    }

    private static func open(_ storage: any Storage) throws -> any EventStore {
        try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
    }

    // MARK: -

    private static func aTimeIsFoundBehindManyEvents(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        // More events of the last minute before the start than a page examines.
        for batch in 0..<11 {
            _ = try append(
                (0..<1_000).map { event("\(batch)-\($0)", user: "ada") }, receivedMilliseconds: 970_000,
                to: store)
        }
        _ = try append([event("last", user: "ada")], receivedMilliseconds: 1_000_000, to: store)
        let id = EventConsumerID(appID: "shop", name: "time")
        let made = try consumers.create(id, EventConsumerSettings(), from: .time(1_000_000))
        try expect(made.lag == 1, "the lag is \(made.lag)")
    }

    private static func consumersRead(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        for number in 0..<7 {
            _ = try append(
                [event("m-\(number)", user: "ada")], receivedMilliseconds: Int64(number) * 100_000, to: store)
            _ = try append([event("x-\(number)", user: "eve")], of: "kiosk", to: store)
        }
        let third = try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events[2].sequence
        for (name, start, first) in [
            ("start", EventStart.start, 0), ("time", .time(400_000), 4), ("after", .after(third), 3),
            ("end", .end, 7),
        ] {
            let id = EventConsumerID(appID: "shop", name: name)
            let made = try consumers.create(id, EventConsumerSettings(), from: start)
            try expect(made.lag == 7 - first, "\(name): the lag is \(made.lag)")
            var read: [String] = []
            while let lease = try leased(consumers, id, limit: 2) {
                try expect(lease.events.count <= 2, "a lease has at most the requested number of events")
                read += lease.events.map(\.messageID)
                try consumers.acknowledge(lease.id, of: id, through: nil)
            }
            try expect(read == (first..<7).map { "m-\($0)" }, "\(name): read \(read)")
            let state = try consumers.find(id)
            try expect(state.lag == 0 && state.oldestUnreadMilliseconds == nil, "no event is unread")
        }
        _ = try append([event("m-7", user: "ada")], to: store)
        for name in ["start", "end"] {
            let lease = try leased(consumers, EventConsumerID(appID: "shop", name: name))
            try expect(lease?.events.map(\.messageID) == ["m-7"], "\(name) continues with the new event")
        }
        try expect(
            try consumers.all(.pull, of: "shop").map(\.id.name) == ["after", "end", "start", "time"],
            "all consumers are listed by name")
        try expect(try consumers.all(.pull, of: "kiosk").isEmpty, "another app has no consumers")
        let id = EventConsumerID(appID: "shop", name: "start")
        try expect(
            try code { _ = try consumers.create(id, EventConsumerSettings(), from: .start) } == .exists,
            "a name cannot be used twice")
        for (name, settings) in [
            ("a/b", EventConsumerSettings()), ("", EventConsumerSettings()),
            ("p", EventConsumerSettings(partitions: 17)), ("p", EventConsumerSettings(partitions: 0)),
            ("h", EventConsumerSettings(holdDays: 91)),
        ] {
            let id = EventConsumerID(appID: "shop", name: name)
            try expect(
                try code { _ = try consumers.create(id, settings, from: .start) } == .invalid,
                "invalid: \(name)")
        }
        try consumers.delete(id)
        try expect(try code { _ = try consumers.find(id) } == .notFound, "a deleted consumer is not found")
    }

    private static func leasesAreExclusive(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let clock = Clock()
        let consumers = storage.openConsumers(with: store, now: clock.now)
        let id = EventConsumerID(appID: "shop", name: "one")
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        _ = try append((0..<6).map { event("m-\($0)", user: "ada") }, to: store)

        let first = try unwrap(
            try leased(consumers, id, limit: 4, seconds: 10), "events can be leased")
        try expect(try leased(consumers, id) == nil, "leased events are not leased again")
        try consumers.release(first.id, of: id)
        let second = try unwrap(try leased(consumers, id, limit: 4, seconds: 10), "released events are free")
        try expect(second.events.map(\.messageID) == ["m-0", "m-1", "m-2", "m-3"], "the events are the same")
        try expect(
            try code { try consumers.acknowledge(first.id, of: id, through: nil) } == .leaseExpired,
            "a released lease cannot be acknowledged")

        try consumers.acknowledge(second.id, of: id, through: second.events[1].sequence)
        try expect(
            try consumers.find(id).partitions[0].committed == second.events[1].sequence, "the position moves")
        try expect(try leased(consumers, id) == nil, "the rest stays leased")
        try expect(
            try code { try consumers.acknowledge(second.id, of: id, through: second.scannedThrough + 1) }
                == .notInLease,
            "an event after the lease cannot be acknowledged")

        // The lease has expired, but its events have not been leased again. So the acknowledgement counts.
        clock.advance(seconds: 11)
        try consumers.acknowledge(second.id, of: id, through: second.events[2].sequence)
        let third = try unwrap(try leased(consumers, id, seconds: 10), "expired leases are replaced")
        try expect(
            third.events.map(\.messageID) == ["m-3", "m-4", "m-5"], "only the rest is leased")
        try expect(
            try code { try consumers.acknowledge(second.id, of: id, through: nil) } == .leaseExpired,
            "an expired lease cannot be acknowledged after a new lease")
        let position = try consumers.acknowledge(third.id, of: id, through: nil)
        try expect(
            try consumers.acknowledge(third.id, of: id, through: nil) == position, "a repetition is harmless")
        try expect(try leased(consumers, id) == nil, "all events are acknowledged")
        try expect(
            try code {
                _ = try consumers.lease(EventConsumerID(appID: "kiosk", name: "one"), limit: 1, seconds: 10)
            }
                == .notFound, "another app has no such consumer")
    }

    private static func partitionsKeepOrder(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        let id = EventConsumerID(appID: "shop", name: "four")
        _ = try consumers.create(id, EventConsumerSettings(partitions: 4), from: .start)
        for number in 0..<60 {
            let isDevice = number.isMultiple(of: 3)
            _ = try append(
                [
                    event(
                        "m-\(number)", user: isDevice ? nil : "user-\(number % 7)",
                        device: isDevice ? "device-\(number % 5)" : nil)
                ], to: store)
        }
        var held: Set<Int> = []
        var leases: [EventLease] = []
        while let lease = try leased(consumers, id, limit: 3) {
            try expect(held.insert(lease.partition).inserted, "a partition is leased once")
            leases.append(lease)
        }
        try expect(held.count > 1, "several partitions can be leased at once")
        var read: [StoredEvent] = []
        while !leases.isEmpty {
            let lease = leases.removeFirst()
            read += lease.events
            try consumers.acknowledge(lease.id, of: id, through: nil)
            if let next = try leased(consumers, id, limit: 3) { leases.append(next) }
        }
        try expect(Set(read.map(\.messageID)).count == 60 && read.count == 60, "each event is read once")
        for (_, events) in Dictionary(grouping: read, by: { $0.userID ?? $0.anonymousID ?? "" }) {
            try expect(
                zip(events, events.dropFirst()).allSatisfy { $0.sequence < $1.sequence },
                "the events of each user are in order")
        }
    }

    private static func seeking(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        let id = EventConsumerID(appID: "shop", name: "one")
        let hook = EventConsumerID(appID: "shop", kind: .webhook, name: "one")
        for each in [id, hook] { _ = try consumers.create(each, EventConsumerSettings(), from: .start) }
        _ = try append((0..<3).map { event("m-\($0)", user: "ada") }, to: store)
        let lease = try unwrap(try leased(consumers, id, limit: 2), "events can be leased")
        let other = try unwrap(try leased(consumers, hook), "a consumer of another kind has its own leases")
        try consumers.acknowledge(lease.id, of: id, through: nil)
        let again = try unwrap(try leased(consumers, id), "the next event can be leased")
        _ = try consumers.seek(id, to: .start)
        try expect(
            try code { try consumers.acknowledge(again.id, of: id, through: nil) } == .leaseExpired,
            "an ended lease does not move the position")
        let back = try leased(consumers, id)
        try expect(back?.events.map(\.messageID) == ["m-0", "m-1", "m-2"], "reading starts again")
        _ = try consumers.seek(id, to: .end)
        try expect(try leased(consumers, id) == nil, "no event follows the end")

        // Another handle on the same storage seeks.
        let outside = storage.openConsumers(with: nil, now: Clock().now)
        _ = try outside.seek(id, to: .start)
        let seen = try unwrap(try leased(consumers, id), "a seek by another handle takes effect")
        _ = try outside.seek(id, to: .start)
        try expect(
            try code { try consumers.acknowledge(seen.id, of: id, through: nil) } == .leaseExpired,
            "a lease from before the seek by another handle does not move the position")

        try consumers.delete(id)
        try expect(try consumers.all(.pull, of: nil).isEmpty, "the deleted consumer is not listed")
        try expect(try consumers.all(.webhook, of: nil).map(\.id) == [hook], "the webhook remains")
        try consumers.acknowledge(other.id, of: hook, through: nil)
        try expect(try consumers.find(hook).lag == 0, "the consumer of the other kind can acknowledge")
    }

    private static func positionsSurviveARestart(_ storage: any Storage) throws {
        let clock = Clock()
        let id = EventConsumerID(appID: "shop", name: "one")
        var store = try open(storage)
        var consumers = storage.openConsumers(with: store, now: clock.now)
        _ = try consumers.create(id, EventConsumerSettings(partitions: 1, holdDays: 3), from: .start)
        _ = try append((0..<4).map { event("m-\($0)", user: "ada") }, to: store)
        let lease = try unwrap(try leased(consumers, id, limit: 2), "events can be leased")
        try consumers.acknowledge(lease.id, of: id, through: nil)
        let lost = try unwrap(try leased(consumers, id, seconds: 10), "the other events can be leased")
        store.close()

        // A lease may end with the gateway, or at the latest when it expires.
        clock.advance(seconds: 11)
        store = try open(storage)
        defer { store.close() }
        consumers = storage.openConsumers(with: store, now: clock.now)
        let next = try unwrap(try leased(consumers, id), "events of an ended lease are leased again")
        try expect(next.events.map(\.messageID) == ["m-2", "m-3"], "only the rest is leased")
        try expect(
            try code { try consumers.acknowledge(lost.id, of: id, through: nil) } == .leaseExpired,
            "an ended lease does not move the position")
        try expect(try consumers.find(id).settings.holdDays == 3, "the settings are unchanged")
        try checkPositions(of: storage, next.events[0].sequence)
    }

    /// Checks that a position can be parsed, and that positions of another app, later ones and damaged ones
    /// are recognized.
    private static func checkPositions(of storage: any Storage, _ sequence: Int64) throws {
        let here = try storage.log.positions()
        let position = here.text(after: sequence, in: "shop")
        try expect(try here.sequence(of: position, in: "shop") == sequence, "a position can be parsed")
        for (text, fault) in [
            (here.text(after: 1, in: "kiosk"), EventPositions.Fault.otherApp),
            (here.text(after: here.head + 1, in: "shop"), .ahead),
            // A position with a changed checksum.
            (String(position.dropLast(2)) + (position.hasSuffix("AA") ? "BA" : "AA"), .malformed),
            ("x", .malformed), ("", .malformed),
        ] {
            try expectFault(fault, text, here)
        }
    }

    private static func expectFault(
        _ fault: EventPositions.Fault, _ text: String, _ positions: EventPositions
    ) throws {
        do {
            _ = try positions.sequence(of: text, in: "shop")
            throw Violation(description: "a position with the fault \(fault) is accepted")
        } catch let found as EventPositions.Fault {
            try expect(found == fault, "the fault is \(found), not \(fault)")
        }
    }

    private static func positionsAreCopied(_ storage: any Storage, _ restore: Restore) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "copies-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = try storage.openControl(as: .account).createApp(id: "shop")
        let id = EventConsumerID(appID: "shop", name: "one")
        let store = try open(storage)
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        _ = try consumers.create(id, EventConsumerSettings(), from: .start)
        _ = try append((0..<4).map { event("m-\($0)", user: "ada") }, to: store)
        let lease = try unwrap(try leased(consumers, id, limit: 2), "events can be leased")
        try consumers.acknowledge(lease.id, of: id, through: nil)
        let next = try unwrap(try leased(consumers, id), "the other events can be leased")
        let position = try storage.log.positions().text(after: next.events[0].sequence, in: "shop")
        let backup = try storage.backUp(in: folder.path, floorBytes: 0)
        try consumers.acknowledge(next.id, of: id, through: nil)
        store.close()

        let copy = try restore(backup)
        let copyStore = try open(copy)
        defer { copyStore.close() }
        let copied = copy.openConsumers(with: copyStore, now: Clock().now)
        try expect(
            try leased(copied, id)?.events.map(\.messageID) == ["m-2", "m-3"],
            "a backup has the position at the time of the backup")
        try expectFault(.otherLog, position, try copy.log.positions())
        try checkPositions(of: copy, next.events[0].sequence)
    }

    private static func positionsPassFilteredEvents(_ storage: any Storage) throws {
        let store = try open(storage)
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        let id = EventConsumerID(appID: "shop", name: "bob")
        let filter = EventFilter(userID: "bob")
        _ = try consumers.create(id, EventConsumerSettings(filter: filter), from: .start)
        let none = EventConsumerID(appID: "shop", name: "none")
        _ = try consumers.create(
            none, EventConsumerSettings(filter: EventFilter(type: "nothing")), from: .start)
        for number in 0..<9 {
            _ = try append([event("m-\(number)", user: number.isMultiple(of: 3) ? "bob" : "ada")], to: store)
        }
        let lease = try unwrap(try leased(consumers, id), "matching events are leased")
        try expect(lease.events.map(\.messageID) == ["m-0", "m-3", "m-6"], "other events are not leased")
        try consumers.acknowledge(lease.id, of: id, through: nil)
        try expect(try consumers.find(id).lag == 0, "later events that do not match are skipped")
        try expect(try leased(consumers, none) == nil, "no event matches")
        try expect(try consumers.find(none).lag == 0, "skipped events are not counted as lag")
    }

    /// With so few events, retention finishes before the first batch is acknowledged.
    private static func retentionWaits(_ storage: any Storage) throws {
        let day: Int64 = 86_400_000
        let now = Milliseconds(Date()).count
        let missed = Missed()
        func reopen(_ body: (any EventStore, any EventConsumers) throws -> Void) throws {
            let store = try storage.openEvents(
                EventStoreOptions(
                    pendingBytes: 1 << 20, observer: missed, retention: { ["shop": AppRules(days: 1)] }))
            defer { store.close() }
            try body(store, storage.openConsumers(with: store, now: Clock().now))
        }
        func left() throws -> [String] {
            try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events.map(\.messageID)
        }
        func isGap(after sequence: Int64, type: String? = nil) throws -> Bool {
            var query = EventQuery(appID: "shop")
            query.type = type
            return try storage.log.follow(query, after: sequence, limit: 1).gap.isOpen
        }
        let id = EventConsumerID(appID: "shop", name: "slow")
        let store = try open(storage)
        _ = try storage.openConsumers(with: store, now: Clock().now).create(
            id, EventConsumerSettings(holdDays: 5), from: .start)
        let rare = EventConsumerID(appID: "shop", name: "rare")
        _ = try storage.openConsumers(with: store, now: Clock().now).create(
            rare, EventConsumerSettings(filter: EventFilter(verdict: VerdictFilter("verified"))), from: .start
        )
        for (name, age) in [("nine", 9), ("four", 4), ("three", 3), ("new", 0)] {
            _ = try append(
                [event(name, user: "ada")], receivedMilliseconds: now - Int64(age) * day, to: store)
        }
        let stored = try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events
        try expect(try !isGap(after: stored[0].sequence), "nothing was deleted yet")
        store.close()

        try reopen { store, consumers in
            _ = try append([event("x", user: "eve")], of: "kiosk", to: store)
            try expect(
                try isGap(after: stored[0].sequence - 1)
                    && isGap(after: stored[0].sequence - 1, type: "identify"),
                "a read from before the deleted events reports a gap, with any filter")
            try expect(
                try !isGap(after: stored[0].sequence) && !isGap(after: stored[1].sequence),
                "a read from after the deleted events reports no gap")
            try expect(
                try left() == ["four", "three", "new"], "unread events are kept, but only for the hold days")
            try expect(try consumers.find(id).gap.isOpen, "the slow consumer has a gap")
            try expect(missed.consumers == ["slow"], "the missed events are reported once")
            try leasesReportSkippedGap(of: rare, consumers, store)
            let lease = try unwrap(try leased(consumers, id, limit: 1), "the oldest event is leased")
            try expect(lease.gap.isOpen && lease.events.map(\.messageID) == ["four"], "the lease has a gap")
            try consumers.acknowledge(lease.id, of: id, through: nil)
            try expect(try !consumers.find(id).gap.isOpen, "the acknowledgement ends the gap")
        }
        try reopen { store, consumers in
            _ = try append([event("y", user: "eve")], of: "kiosk", to: store)
            try expect(try left() == ["three", "new", "rare"], "acknowledged events are deleted")
            try expect(missed.consumers == ["slow"], "acknowledged events are not reported as missed")
            try consumers.delete(id)
        }
        try reopen { store, _ in
            _ = try append([event("z", user: "eve")], of: "kiosk", to: store)
            try expect(try left() == ["new", "rare"], "without the consumer, retention deletes the event")
        }
    }

    /// Checks a consumer whose filter skips the events after the gap.
    private static func leasesReportSkippedGap(
        of id: EventConsumerID, _ consumers: any EventConsumers, _ store: any EventStore
    ) throws {
        for _ in 0..<2 {
            try expect(try leased(consumers, id) == nil, "no remaining event matches the filter")
            try expect(try consumers.find(id).gap.isOpen, "a skipped gap is not reported yet")
        }
        let proof = EventProof(
            verdict: .verified, code: nil, keyID: "k", enforcement: "required", dialect: "native",
            requestID: "01989f6e-7d3a-7c11-8e5b-0123456789ab", tokenID: nil)
        _ = try append(
            [event("rare", user: "ada")], receivedMilliseconds: Milliseconds(Date()).count, proof: proof,
            to: store)
        for _ in 0..<2 {
            let lease = try unwrap(try leased(consumers, id), "the matching event is leased")
            try expect(lease.gap.isOpen, "the lease reports the gap until an acknowledgement")
            try consumers.release(lease.id, of: id)
        }
        let lease = try unwrap(try leased(consumers, id), "the matching event is leased")
        _ = try consumers.acknowledge(lease.id, of: id, through: nil)
        try expect(try !consumers.find(id).gap.isOpen, "the acknowledgement ends the gap")
    }

    private static func laterGapsAreReported(_ storage: any Storage) throws {
        let id = EventConsumerID(appID: "shop", name: "held")
        let filter = EventFilter(type: "identify")
        let missed = Missed()
        let first = try open(storage)
        _ = try storage.openConsumers(with: first, now: Clock().now).create(
            id, EventConsumerSettings(filter: filter, holdDays: 1), from: .start)
        first.close()
        for round in 1...2 {
            let unswept = try open(storage)
            let consumers = storage.openConsumers(with: unswept, now: Clock().now)
            let received = Milliseconds(Date()).count - 9 * 86_400_000
            _ = try append(
                [event("read-\(round)", user: "ada")], receivedMilliseconds: received, to: unswept)
            try expect(try leased(consumers, id) == nil, "the event does not match the filter")
            _ = try append(
                [event("unread-\(round)", user: "ada")], receivedMilliseconds: received, to: unswept)
            unswept.close()
            let store = try storage.openEvents(
                EventStoreOptions(
                    pendingBytes: 1 << 20, observer: missed, retention: { ["shop": AppRules(days: 1)] }))
            defer { store.close() }
            _ = try append([event("x-\(round)", user: "eve")], of: "kiosk", to: store)
            try expect(missed.consumers.count == round, "the consumer has missed an event")
            try expect(
                try storage.openConsumers(with: store, now: Clock().now).find(id).gap.isOpen,
                "no lease has reported the gap")
        }
    }

    private static func partitionsReportGaps(_ storage: any Storage) throws {
        let id = EventConsumerID(appID: "shop", name: "two")
        let settings = EventConsumerSettings(filter: EventFilter(type: "identify"), partitions: 2)
        let now = Milliseconds(Date()).count
        let first = try open(storage)
        _ = try storage.openConsumers(with: first, now: Clock().now).create(id, settings, from: .start)
        _ = try append([event("old", user: "ada")], receivedMilliseconds: now - 9 * 86_400_000, to: first)
        first.close()
        let store = try storage.openEvents(
            EventStoreOptions(pendingBytes: 1 << 20, retention: { ["shop": AppRules(days: 1)] }))
        defer { store.close() }
        let consumers = storage.openConsumers(with: store, now: Clock().now)
        _ = try append([event("new", user: "ada")], receivedMilliseconds: now, to: store)
        try expect(try leased(consumers, id) == nil, "both partitions pass the gap")

        func lease(_ name: String, of partition: Int) throws -> EventLease {
            let user = (0..<99).map { "user-\($0)" }.first { (user: String) in
                EventPartition(partition, of: 2).has(sender: nil, userID: user, anonymousID: nil)
            }
            _ = try append([event(name, user: user, kind: .identify)], receivedMilliseconds: now, to: store)
            let lease = try unwrap(try leased(consumers, id), "\(name) is leased")
            try expect(lease.partition == partition, "\(name) is in partition \(partition)")
            return lease
        }
        let one = try lease("one", of: 0)
        try expect(one.gap.isOpen, "the first partition reports the gap")
        try consumers.acknowledge(one.id, of: id, through: nil)
        try expect(try consumers.find(id).gap.isOpen, "the second partition has not reported it")
        let other = try lease("other", of: 1)
        try expect(other.gap.isOpen, "the second partition reports the gap")
        let from = try consumers.find(id).partitions[1].committed
        try consumers.acknowledge(other.id, of: id, through: from)
        try consumers.release(other.id, of: id)
        let again = try unwrap(try leased(consumers, id), "the event is leased again")
        try expect(again.gap.isOpen, "no event after the gap was acknowledged")
        try consumers.acknowledge(again.id, of: id, through: nil)
        try expect(try !consumers.find(id).gap.isOpen, "both partitions have acknowledged the gap")
        try expect(try !lease("next", of: 0).gap.isOpen, "the gap is reported once")
    }

    private final class Missed: GatewayObserver {
        private let names = Lock<[String]>([])
        var consumers: [String] { names.withLock { $0 } }
        func requestEnded(_ record: RequestRecord) {}
        func eventsMissed(by consumer: String, ofKind kind: String, appID: String) {
            names.withLock { $0.append(consumer) }
        }
    }
}
