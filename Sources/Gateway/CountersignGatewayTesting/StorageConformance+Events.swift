internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

extension StorageConformance {
    static func event(
        _ id: String, user: String? = nil, device: String? = nil, at milliseconds: Int64 = 1,
        kind: EventKind = .track, json: Range<Int> = 0..<2, isIdentifiedByContent: Bool = false
    ) -> EventBatch.Event {
        EventBatch.Event(
            messageID: id, kind: kind, userID: user, anonymousID: device, name: "Order",
            timestampMilliseconds: milliseconds, json: json, isIdentifiedByContent: isIdentifiedByContent)
    }

    static func append(
        _ events: [EventBatch.Event], of app: String = "shop", customers: [CustomerChange] = [],
        receivedMilliseconds: Int64 = 5, body: String = "{}", proof: EventProof? = nil,
        to store: any EventStore
    ) throws -> AppendOutcome {
        let outcome = Lock<Result<AppendOutcome, StoreFailure>?>(nil)
        let done = DispatchSemaphore(value: 0)
        let batch = EventBatch(
            appID: app, receivedMilliseconds: receivedMilliseconds, body: Array(body.utf8), events: events,
            customers: customers, proof: proof)
        store.append(batch) { result in
            outcome.withLock { $0 = result }
            done.signal()
        }
        guard done.wait(timeout: .now() + 60) == .success, let result = outcome.withLock({ $0 }) else {
            throw Violation(description: "the store did not complete a batch within 60 s")
        }
        try wait()
        return try result.get()
    }

    static func eventsAreStoredOnce(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let first = try append([event("m", user: "ada"), event("n", device: "d-1")], to: store)
        try expect(first.accepted == 2 && first.duplicates == 0, "two events are accepted")
        let again = try append([event("m", user: "ada"), event("o", user: "ada")], to: store)
        try expect(again.accepted == 1 && again.duplicates == 1, "the same event is stored once")
        let others = try append([event("m", user: "bob"), event("m", device: "d-1")], to: store)
        try expect(others.accepted == 2, "another sender may have the same message id")
        try expect(
            try append([event("m", user: "ada")], of: "kiosk", to: store).accepted == 1,
            "another app may have the same message id")
        try expect(try storage.log.count() == 6, "every accepted event is counted")
        // The strings are equal in Swift, but their bytes differ. The store compares users by bytes.
        let (composed, decomposed) = ("zo\u{E9}", "zoe\u{301}")
        let alike = try append([event("m", user: composed), event("m", user: decomposed)], to: store)
        try expect(alike.accepted == 2, "users whose ids differ in their bytes are two senders")
        for user in [composed, decomposed] {
            var query = EventQuery(appID: "shop")
            query.userID = user
            let found = try storage.log.follow(query, after: 0, limit: 9).events
            try expect(found.count == 1, "each of the two users has an event")
        }
        var listed = 0
        try storage.log.users(of: "shop", after: "z") { _ in
            listed += 1
            return false
        }
        try expect(listed == 2, "each of the two users is listed")
    }

    static func eventsAreReadAsStored(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let body = #"{"a":"é \u0000 \\"}"#
        let proof = EventProof(
            verdict: .verified, code: 7, keyID: "k", enforcement: "required", dialect: "native",
            requestID: "r", tokenID: "t")
        let sent = event("m", user: "ada", device: "d", json: 0..<body.utf8.count)
        _ = try append(
            [sent], receivedMilliseconds: 1_700_000_000_123, body: body, proof: proof, to: store)
        var query = EventQuery(appID: "shop")
        query.messageID = "m"
        let found = try unwrap(
            try storage.log.newest(query, before: nil, limit: 9).events.first, "a message id finds an event"
        )
        try expect(found.body == Array(body.utf8), "the body has the same bytes")
        try expect(
            found.messageID == "m" && found.userID == "ada" && found.anonymousID == "d",
            "the ids are the same as stored")
        try expect(
            found.receivedMilliseconds == 1_700_000_000_123 && found.timestampMilliseconds == 1,
            "the times are the same as stored")
        try expect(found.proof == proof, "the proof is the same as stored")
        query.messageID = "n"
        try expect(
            try storage.log.newest(query, before: nil, limit: 9).events.isEmpty,
            "another message id finds nothing")
    }

    static func anEventIsFoundByAnOldMessageID(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let now = Milliseconds(Date()).count
        // A UUIDv7 dated 100 days before the receipt of the event.
        let time = String(now - 100 * 86_400_000, radix: 16)
        let id = "0\(time.prefix(7))-\(time.suffix(4))-7000-8000-000000000001"
        _ = try append([event(id, user: "ada")], receivedMilliseconds: now, to: store)
        var query = EventQuery(appID: "shop")
        query.messageID = id
        try expect(
            try storage.log.newest(query, before: nil, limit: 9).events.map(\.messageID) == [id],
            "a message id with an old date finds the event")
    }

    static func contentIdentifiesEvents(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        func accepted(_ id: String, _ users: [String?]) throws -> [Int] {
            try users.map { user in
                let event = event(id, user: user, device: "d", isIdentifiedByContent: true)
                return try append([event], to: store).accepted
            }
        }
        // An attacker who knows the content sends the event first, as another user.
        try expect(
            try accepted("a", ["mallory", "jane", "jane", "mallory"]) == [1, 1, 0, 0],
            "another user's event does not replace one's own")
        // The customer signs in between two attempts.
        try expect(
            try accepted("b", [nil, nil, "jane", "jane", "bob"]) == [1, 0, 0, 0, 1],
            "an event without a user is assigned to the first user")
        try expect(
            try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events.map(\.userID)
                == ["mallory", "jane", "jane", "bob"], "each user has an event")
        var own = EventQuery(appID: "shop", filter: EventFilter(userID: "jane"))
        try expect(
            try storage.log.follow(own, after: 0, limit: 9).events.map(\.messageID) == ["a"],
            "a reader that filters by user does not get an event that was assigned to the user later")
        own.isExport = true
        try expect(
            try storage.log.follow(own, after: 0, limit: 9).events.map(\.messageID) == ["a", "b"]
                && storage.log.newest(own, before: nil, limit: 9).events.count == 2,
            "an export and a list contain the event")
        try expect(try storage.log.count() == 4, "each event is counted once")
    }

    static func eventsAreReadByTheirVerdict(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        for verdict in EventProof.Verdict.allCases {
            let proof = EventProof(
                verdict: verdict, code: 26, keyID: "k", enforcement: "optional", dialect: "native",
                requestID: "01989f6e-7d3a-7c11-8e5b-0123456789ab", tokenID: "t")
            _ = try append([event(verdict.rawValue, user: "ada")], proof: proof, to: store)
        }
        _ = try append([event("unknown", user: "ada")], to: store)
        func found(_ word: String) throws -> [[String]] {
            let filter = try unwrap(VerdictFilter(word), "\(word) is a filter")
            var query = EventQuery(appID: "shop")
            query.verdict = filter
            var export = query
            export.isExport = true
            return [
                try storage.log.follow(query, after: 0, limit: 9).events,
                try storage.log.follow(export, after: 0, limit: 9).events,
            ].map { $0.map(\.messageID) }
        }
        for word in VerdictFilter.words {
            let wanted = word == "unverified" ? ["warned", "not_judged", "anonymous", "unknown"] : [word]
            try expect(try found(word) == [wanted, wanted], "\(word) finds \(wanted)")
        }
        let first = try unwrap(
            try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 1).events.first,
            "an event is read")
        let proof = EventProof(
            verdict: .verified, code: 26, keyID: "k", enforcement: "optional", dialect: "native",
            requestID: "01989f6e-7d3a-7c11-8e5b-0123456789ab", tokenID: "t")
        try expect(first.proof == proof, "the proof is the same as stored")
    }

    static func eventsAreReadByAClaim(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let kept = [
            "text": #"{"level":3,"plan":"pro é","vip":true}"#, "number": #"{"plan":3}"#,
            "forged": #"{"note":"\",\"plan\":\"pro é\",","plan":"x","z":"{\"plan\":3}"}"#, "none": nil,
        ]
        for (id, claims) in kept.sorted(by: { $0.key < $1.key }) {
            let proof = EventProof(verdict: .verified, dialect: "native", requestID: "r", claims: claims)
            _ = try append([event(id, user: "ada")], proof: proof, to: store)
        }
        let stored = try storage.log.follow(EventQuery(appID: "shop"), after: 0, limit: 9).events
        try expect(stored.allSatisfy { $0.proof?.claims == kept[$0.messageID] }, "claims are the same")
        let consumers = storage.openConsumers(with: store, now: { 0 })
        for (text, wanted) in [
            ("plan=pro é", ["text"]), ("plan=3", ["number"]), ("vip=true", ["text"]), ("level=3", ["text"]),
            ("plan=pro", []), ("lan=3", []), ("level=", []), ("plan=\"pro é\"", []), ("plan=3.0", ["number"]),
            ("level=3,\"plan\":\"pro é\"", []),
        ] {
            let filter = EventFilter(claim: try unwrap(ClaimFilter(text), "\(text) is a filter"))
            var query = EventQuery(appID: "shop")
            query.claim = filter.claim
            let found = try storage.log.follow(query, after: 0, limit: 9).events
            try expect(found.map(\.messageID) == wanted, "\(text) finds \(wanted)")
            let id = EventConsumerID(appID: "shop", name: "c")
            _ = try consumers.create(id, EventConsumerSettings(filter: filter), from: .start)
            try expect(try consumers.find(id).settings.filter == filter, "the filter of a consumer is kept")
            try consumers.delete(id)
        }
    }

    static func pagesAreBounded(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let rare = event("rare", user: "ada", kind: .identify)
        let again = event("rare-2", user: "ada", kind: .identify)
        let others = (0..<300).map { event("m-\($0)", user: "ada") }
        for events in [[rare], others, [again]] { _ = try append(events, to: store) }
        for user in [nil, "ada"] {
            var query = EventQuery(appID: "shop")
            query.userID = user
            query.type = "identify"
            query.maximumScanned = 300
            let first = try storage.log.newest(query, before: nil, limit: 3)
            try expect(first.events.map(\.messageID) == ["rare-2"], "a page ends at the scan limit")
            let next = try unwrap(first.next, "the page has a next position")
            let second = try storage.log.newest(query, before: next, limit: 3)
            try expect(second.events.map(\.messageID) == ["rare"], "the next page continues at that position")
            try expect(second.next == nil, "the second page is the last")
            let found = try unwrap(second.events.first, "the second page has an event")
            let oldest = try storage.log.follow(query, after: found.sequence, limit: 3)
            try expect(oldest.events.isEmpty && oldest.hasMore, "a page may be empty although events follow")
            let rest = try storage.log.follow(
                query, after: oldest.scannedThrough, limit: 3)
            try expect(rest.events.map(\.messageID) == ["rare-2"], "the next page has the remaining event")
        }
    }

    static func eventsAreReadInOrder(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        for number in 0..<7 {
            _ = try append([event("m-\(number)", user: number.isMultiple(of: 2) ? "ada" : "bob")], to: store)
            _ = try append([event("x-\(number)", user: "eve")], of: "kiosk", to: store)
        }
        let wanted = (0..<7).map { "m-\($0)" }
        let query = EventQuery(appID: "shop")
        var read: [StoredEvent] = []
        var range = try storage.log.follow(query, after: 0, limit: 3)
        read += range.events
        while range.hasMore {
            range = try storage.log.follow(query, after: range.scannedThrough, limit: 3)
            read += range.events
        }
        try expect(read.map(\.messageID) == wanted, "the oldest event comes first")
        try expect(
            zip(read, read.dropFirst()).allSatisfy { $0.sequence < $1.sequence }, "sequence numbers increase")
        read = []
        var page = try storage.log.newest(query, before: nil, limit: 3)
        read += page.events
        while let next = page.next {
            page = try storage.log.newest(query, before: next, limit: 3)
            read += page.events
        }
        try expect(read.map(\.messageID) == wanted.reversed(), "the newest event comes first")
        for end in [Int64.min, -1, 0] {
            try expect(
                try storage.log.newest(query, before: end, limit: 3).events.isEmpty,
                "there is nothing before the first event")
        }
        try expect(
            try storage.log.follow(query, after: .max, limit: 3).events.isEmpty,
            "there is nothing after the last event")
        try expect(
            try storage.log.follow(query, after: .min, limit: 1).events.map(\.messageID) == ["m-0"],
            "all events follow the smallest number")
        var filtered = query
        filtered.userID = "bob"
        try expect(
            try storage.log.follow(filtered, after: 0, limit: 9).events.map(\.messageID)
                == ["m-1", "m-3", "m-5"], "only events of the user are read")
        var users: [String] = []
        try storage.log.users(of: "shop", after: "") { user in
            users.append(user)
            return false
        }
        try expect(users == ["ada", "bob"], "an app's users are listed once, in order")
    }

    static func aClosedStoreRejectsEvents(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        _ = try append([event("m", user: "ada")], to: store)
        store.close()
        do {
            _ = try append([event("n", user: "ada")], to: store)
            throw Violation(description: "a closed store accepts an event")
        } catch let failure as StoreFailure {
            try expect(failure.reason == .closed, "a closed store fails with closed")
        }
        let again = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { again.close() }
        try expect(try storage.log.count() == 1, "accepted events are stored after closing")
        try expect(
            try append([event("m", user: "ada")], to: again).duplicates == 1, "duplicates are recognized")
    }

    /// With so few events, retention finishes before the first batch is acknowledged.
    static func retentionDeletes(_ storage: any Storage) throws {
        func messageIDs(of app: String) throws -> [String] {
            try storage.log.follow(EventQuery(appID: app), after: 0, limit: 9).events.map(\.messageID)
        }
        func open(_ rules: AppRules) throws -> any EventStore {
            try storage.openEvents(
                EventStoreOptions(pendingBytes: 1 << 20, retention: { ["shop": rules] }))
        }
        let now = Milliseconds(Date()).count
        var store = try open(AppRules())
        let eve = change(["registered": "eve"])
        for app in ["shop", "kiosk"] {
            _ = try append([event("old", user: "ada")], of: app, customers: [eve], to: store)
            _ = try append([event("new", user: "ada")], of: app, receivedMilliseconds: now, to: store)
        }
        store.close()
        try expect(try messageIDs(of: "shop") == ["old", "new"], "without a rule, all events are kept")

        store = try open(AppRules(days: 1))
        _ = try append([event("later", user: "ada")], receivedMilliseconds: now, to: store)
        try expect(try messageIDs(of: "shop") == ["new", "later"], "events past the retention are deleted")
        try expect(try messageIDs(of: "kiosk") == ["old", "new"], "each app has its own rules")
        let customers = try storage.openCustomers()
        for (app, isKept) in [("shop", false), ("kiosk", true)] {
            let owner = try customers.owner(
                of: CustomerIdentifier(name: "registered", value: "eve"), appID: app)
            try expect((owner != nil) == isKept, "customers follow the retention of \(app)")
        }
        customers.close()
        store.close()

        // Each event has two bytes.
        store = try open(AppRules(bytes: 2))
        _ = try append([event("last", user: "ada")], receivedMilliseconds: now, to: store)
        store.close()
        try expect(try messageIDs(of: "shop") == ["later", "last"], "too many bytes: deletes the oldest")
    }

    static func keyUsesAddUp(_ storage: any Storage) throws {
        try expect(try storage.log.keyUses(of: "shop").isEmpty, "a new log has no key uses")
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        for milliseconds in [10, 30, 20] as [Int64] {
            store.noteKeyUse(appID: "shop", keyID: "k", milliseconds: milliseconds)
            _ = try append([event("m-\(milliseconds)", user: "ada")], to: store)
        }
        store.close()
        let use = try unwrap(try storage.log.keyUses(of: "shop").first, "a key that was used has a use")
        try expect(use.verified == 3 && use.lastMilliseconds == 30, "uses are summed; the last time counts")
    }
}
