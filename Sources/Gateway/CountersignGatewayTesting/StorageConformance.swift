internal import CountersignCore
internal import Foundation
internal import GatewayModel
package import GatewayStorage

/// Requirements for all storage engines of a gateway.
///
/// ```swift
/// @Test(arguments: StorageConformance.checks)
/// func anEngineDoes(_ check: StorageConformance) throws {
///     try check.run(on: try SQLiteStorage(dataDirectory: folder)) { backup in
///         _ = try Backup.restore(backup.path, to: otherFolder)
///         return try SQLiteStorage(dataDirectory: otherFolder)
///     }
/// }
/// ```
///
/// Each check needs an empty storage. Engines with external backup tools skip the checks with ``needsCopy``.
package struct StorageConformance: Sendable, CustomStringConvertible {
    /// The requirement that was violated.
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    /// Opens another storage from a copy.
    package typealias Restore = (Backup) throws -> any Storage

    /// The name of the check.
    package let description: String
    /// Whether the storage must support copies.
    package let needsCopy: Bool
    private let body: @Sendable (any Storage, Restore) throws -> Void

    init(
        description: String, restoring body: @escaping @Sendable (any Storage, Restore) throws -> Void
    ) {
        self.description = description
        needsCopy = true
        self.body = body
    }

    init(description: String, body: @escaping @Sendable (any Storage) throws -> Void) {
        self.description = description
        needsCopy = false
        self.body = { storage, _ in try body(storage) }
    }

    /// Waits until stored events are readable. Some engines delay that while transactions are open.
    package typealias Settle = @Sendable () throws -> Void

    @TaskLocal private static var settle: Settle = {}

    /// Throws ``Violation``, or an error of the engine.
    package func run(
        on storage: any Storage, settle: @escaping Settle = {}, restore: Restore
    ) throws {
        try Self.$settle.withValue(settle) { try body(storage, restore) }
    }

    package static let checks =
        [
            StorageConformance(
                description: "an event is kept once by app, sender and message id", body: eventsAreKeptOnce),
            StorageConformance(
                description: "an event is read as it was stored", body: eventsAreReadAsStored),
            StorageConformance(
                description: "an event identified by its content is stored once for each user",
                body: contentIdentifiesEvents),
            StorageConformance(
                description: "events are read in their order, page after page", body: eventsAreReadInOrder),
            StorageConformance(
                description: "a page looks at a bounded number of events, and says where to go on",
                body: pagesAreBounded),
            StorageConformance(
                description: "what an event is worth is kept, and events are read by it",
                body: eventsAreReadByTheirVerdict),
            StorageConformance(
                description: "claims are kept, and events are read by one", body: eventsAreReadByAClaim),
            StorageConformance(
                description: "a batch is kept whole or not at all, and not after the end",
                body: closedKeepsNothing),
            StorageConformance(
                description: "what an app keeps no longer is deleted", body: retentionDeletes),
            StorageConformance(
                description: "the uses of keys add up", body: keyUsesAddUp),
            StorageConformance(
                description: "the ids of one customer are joined, those of two are not",
                body: customersAreJoined),
            StorageConformance(
                description: "what is kept of one person is found and deleted", body: aPersonIsForgotten),
            StorageConformance(
                description: "a setting is seen by whoever has opened it, and forgotten",
                body: settingsAreSeen),
            StorageConformance(description: "the audit log is a chain", body: theAuditLogIsAChain),
            StorageConformance(
                description: "a refresh token is exchanged once", body: refreshTokensAreExchangedOnce),
            StorageConformance(
                description: "ended sessions and spent assertions stay so", body: whatHasEndedStaysEnded),
            StorageConformance(
                description: "a copy of what is in use is a storage again", restoring: aCopyIsAStorage),
        ] + ofConsumers

    static func expect(
        _ isTrue: @autoclosure () throws -> Bool, _ what: String, line: Int = #line
    ) throws {
        if try !isTrue() { throw Violation(description: "\(what) (line \(line))") }
    }

    static func unwrap<Value>(_ value: Value?, _ what: String) throws -> Value {
        guard let value else { throw Violation(description: what) }
        return value
    }
}

// MARK: Events

extension StorageConformance {
    static func event(
        _ id: String, user: String? = nil, device: String? = nil, at milliseconds: Int64 = 1
    ) -> EventBatch.Event {
        EventBatch.Event(
            messageID: id, kind: .track, userID: user, anonymousID: device, name: "Order",
            timestampMilliseconds: milliseconds, json: 0..<2)
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
            throw Violation(description: "a batch got no answer")
        }
        try settle()
        return try result.get()
    }

    private static func eventsAreKeptOnce(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let first = try append([event("m", user: "ada"), event("n", device: "d-1")], to: store)
        try expect(first.accepted == 2 && first.duplicates == 0, "two events are accepted")
        let again = try append([event("m", user: "ada"), event("o", user: "ada")], to: store)
        try expect(again.accepted == 1 && again.duplicates == 1, "the same event is kept once")
        let others = try append([event("m", user: "bob"), event("m", device: "d-1")], to: store)
        try expect(others.accepted == 2, "another sender may have the same message id")
        try expect(
            try append([event("m", user: "ada")], of: "kiosk", to: store).accepted == 1,
            "another app may have the same message id")
        try expect(try storage.log.count() == 6, "every accepted event is counted")
        // Equal as Swift strings but different ids: users are distinguished by bytes.
        let (composed, decomposed) = ("zo\u{E9}", "zoe\u{301}")
        let alike = try append([event("m", user: composed), event("m", user: decomposed)], to: store)
        try expect(alike.accepted == 2, "users whose ids differ in their bytes are two senders")
        for user in [composed, decomposed] {
            var query = EventQuery(appID: "shop")
            query.userID = user
            let found = try storage.log.oldest(query, after: 0, limit: 9).events
            try expect(found.count == 1, "each of them has an event")
        }
        var listed = 0
        try storage.log.users(of: "shop", after: "z") { _ in
            listed += 1
            return false
        }
        try expect(listed == 2, "each of them is listed")
    }

    private static func eventsAreReadAsStored(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let body = #"{"a":"é \u0000 \\"}"#
        let proof = EventProof(
            verdict: .verified, code: 7, keyID: "k", enforcement: "required", dialect: "native",
            requestID: "r", tokenID: "t")
        var sent = event("m", user: "ada", device: "d")
        sent.json = 0..<body.utf8.count
        _ = try append(
            [sent], receivedMilliseconds: 1_700_000_000_123, body: body, proof: proof, to: store)
        var query = EventQuery(appID: "shop")
        query.messageID = "m"
        let found = try unwrap(
            try storage.log.newest(query, before: nil, limit: 9).events.first, "it is found by its message id"
        )
        try expect(found.body == Array(body.utf8), "its body has the same bytes")
        try expect(
            found.messageID == "m" && found.userID == "ada" && found.anonymousID == "d",
            "its ids are the same")
        try expect(
            found.receivedMilliseconds == 1_700_000_000_123 && found.timestampMilliseconds == 1,
            "its times are the same")
        try expect(found.proof == proof, "its proof is the same")
        query.messageID = "n"
        try expect(
            try storage.log.newest(query, before: nil, limit: 9).events.isEmpty,
            "another message id finds nothing")
    }

    private static func contentIdentifiesEvents(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        func accepted(_ id: String, _ users: [String?]) throws -> [Int] {
            try users.map { user in
                var event = event(id, user: user, device: "d")
                event.isIdentifiedByContent = true
                return try append([event], to: store).accepted
            }
        }
        // A stranger who knows the content sends the event first.
        try expect(
            try accepted("a", ["mallory", "jane", "jane", "mallory"]) == [1, 1, 0, 0],
            "another user's event does not replace one's own")
        // The customer signs in between two attempts.
        try expect(
            try accepted("b", [nil, nil, "jane", "jane", "bob"]) == [1, 0, 0, 0, 1],
            "an event without a user becomes the first user's")
        try expect(
            try storage.log.oldest(EventQuery(appID: "shop"), after: 0, limit: 9).events.map(\.userID)
                == ["mallory", "jane", "jane", "bob"], "each user has an event")
        try expect(try storage.log.count() == 4, "each is counted once")
    }

    private static func eventsAreReadByTheirVerdict(_ storage: any Storage) throws {
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
            let following = EventFollowing(appID: "shop", filter: EventFilter(verdict: filter))
            return [
                try storage.log.oldest(query, after: 0, limit: 9).events,
                try storage.log.follow(following, after: 0, limit: 9).events,
            ].map { $0.map(\.messageID) }
        }
        for word in VerdictFilter.words {
            let wanted = word == "unverified" ? ["warned", "not_judged", "anonymous", "unknown"] : [word]
            try expect(try found(word) == [wanted, wanted], "\(word) finds \(wanted)")
        }
        let first = try unwrap(
            try storage.log.oldest(EventQuery(appID: "shop"), after: 0, limit: 1).events.first,
            "an event is read")
        let proof = EventProof(
            verdict: .verified, code: 26, keyID: "k", enforcement: "optional", dialect: "native",
            requestID: "01989f6e-7d3a-7c11-8e5b-0123456789ab", tokenID: "t")
        try expect(first.proof == proof, "its proof is what was stored")
    }

    private static func eventsAreReadByAClaim(_ storage: any Storage) throws {
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
        let stored = try storage.log.oldest(EventQuery(appID: "shop"), after: 0, limit: 9).events
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
            let following = EventFollowing(appID: "shop", filter: filter)
            for found in [
                try storage.log.oldest(query, after: 0, limit: 9).events,
                try storage.log.follow(following, after: 0, limit: 9).events,
            ] {
                try expect(found.map(\.messageID) == wanted, "\(text) finds \(wanted)")
            }
            let id = EventConsumerID(appID: "shop", name: "c")
            _ = try consumers.create(id, EventConsumerSettings(filter: filter), from: .start)
            try expect(try consumers.find(id).settings.filter == filter, "the filter of a consumer is kept")
            try consumers.delete(id)
        }
    }

    private static func pagesAreBounded(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        var rare = event("rare", user: "ada")
        rare.kind = .identify
        var again = event("rare-2", user: "ada")
        again.kind = .identify
        let others = (0..<300).map { event("m-\($0)", user: "ada") }
        for events in [[rare], others, [again]] { _ = try append(events, to: store) }
        for user in [nil, "ada"] {
            var query = EventQuery(appID: "shop")
            query.userID = user
            query.type = "identify"
            query.mostLooked = 300
            let first = try storage.log.newest(query, before: nil, limit: 3)
            try expect(first.events.map(\.messageID) == ["rare-2"], "a page ends though it has room")
            let next = try unwrap(first.next, "it says where to go on")
            let second = try storage.log.newest(query, before: next, limit: 3)
            try expect(second.events.map(\.messageID) == ["rare"], "the next page goes on from there")
            try expect(second.next == nil, "and is the last")
            let found = try unwrap(second.events.first, "it is there")
            let oldest = try storage.log.oldest(query, after: found.sequence, limit: 3)
            try expect(oldest.events.isEmpty, "a page may have none")
            let rest = try storage.log.oldest(
                query, after: try unwrap(oldest.next, "an empty page says where to go on"), limit: 3)
            try expect(rest.events.map(\.messageID) == ["rare-2"], "a search that goes on finds the rest")
        }
    }

    private static func eventsAreReadInOrder(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        for number in 0..<7 {
            _ = try append([event("m-\(number)", user: number.isMultiple(of: 2) ? "ada" : "bob")], to: store)
            _ = try append([event("x-\(number)", user: "eve")], of: "kiosk", to: store)
        }
        let wanted = (0..<7).map { "m-\($0)" }
        let query = EventQuery(appID: "shop")
        var read: [StoredEvent] = []
        var page = try storage.log.oldest(query, after: 0, limit: 3)
        read += page.events
        while let next = page.next {
            page = try storage.log.oldest(query, after: next, limit: 3)
            read += page.events
        }
        try expect(read.map(\.messageID) == wanted, "the oldest event comes first")
        try expect(
            zip(read, read.dropFirst()).allSatisfy { $0.sequence < $1.sequence }, "positions count up")
        read = []
        page = try storage.log.newest(query, before: nil, limit: 3)
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
            try storage.log.oldest(query, after: .max, limit: 3).events.isEmpty,
            "there is nothing after the last event")
        try expect(
            try storage.log.oldest(query, after: .min, limit: 1).events.map(\.messageID) == ["m-0"],
            "everything comes after the least number")
        var filtered = query
        filtered.userID = "bob"
        try expect(
            try storage.log.oldest(filtered, after: 0, limit: 9).events.map(\.messageID)
                == ["m-1", "m-3", "m-5"], "a filter holds")
        var users: [String] = []
        try storage.log.users(of: "shop", after: "") { user in
            users.append(user)
            return false
        }
        try expect(users == ["ada", "bob"], "an app's users are listed once, in order")
    }

    private static func closedKeepsNothing(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        _ = try append([event("m", user: "ada")], to: store)
        store.close()
        do {
            _ = try append([event("n", user: "ada")], to: store)
            throw Violation(description: "a store that has ended accepts an event")
        } catch let failure as StoreFailure {
            try expect(failure.reason == .closed, "a store that has ended says so")
        }
        let again = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { again.close() }
        try expect(try storage.log.count() == 1, "what was accepted is there after the end")
        try expect(
            try append([event("m", user: "ada")], to: again).duplicates == 1, "and is known after the end")
    }

    /// With so few events, retention finishes before the first batch is acknowledged.
    private static func retentionDeletes(_ storage: any Storage) throws {
        func messageIDs(of app: String) throws -> [String] {
            try storage.log.oldest(EventQuery(appID: app), after: 0, limit: 9).events.map(\.messageID)
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
        try expect(try messageIDs(of: "shop") == ["old", "new"], "without a rule all is kept")

        var rules = AppRules()
        rules.retentionDays = 1
        store = try open(rules)
        _ = try append([event("later", user: "ada")], receivedMilliseconds: now, to: store)
        try expect(try messageIDs(of: "shop") == ["new", "later"], "what is too old is deleted")
        try expect(try messageIDs(of: "kiosk") == ["old", "new"], "another app's rules are its own")
        let customers = try storage.openCustomers()
        for (app, isKept) in [("shop", false), ("kiosk", true)] {
            let owner = try customers.owner(
                of: CustomerIdentifier(name: "registered", value: "eve"), appID: app)
            try expect((owner != nil) == isKept, "a customer is forgotten as events are, in \(app)")
        }
        customers.close()
        store.close()

        // Each event has two bytes.
        rules.retentionDays = nil
        rules.retentionBytes = 2
        store = try open(rules)
        _ = try append([event("last", user: "ada")], receivedMilliseconds: now, to: store)
        store.close()
        try expect(try messageIDs(of: "shop") == ["later", "last"], "of too much the oldest is deleted")
    }

    private static func keyUsesAddUp(_ storage: any Storage) throws {
        try expect(try storage.log.keyUses(of: "shop").isEmpty, "before the first gateway no key has a use")
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        for milliseconds in [10, 30, 20] as [Int64] {
            store.noteKeyUse(appID: "shop", keyID: "k", milliseconds: milliseconds)
            _ = try append([event("m-\(milliseconds)", user: "ada")], to: store)
        }
        store.close()
        let use = try unwrap(try storage.log.keyUses(of: "shop").first, "a key that was used has a use")
        try expect(use.verified == 3 && use.lastMilliseconds == 30, "uses add up, and the latest counts")
    }
}

// MARK: Customers

extension StorageConformance {
    private static func change(_ ids: KeyValuePairs<String, String>, _ property: String? = nil)
        -> CustomerChange
    {
        var change = CustomerChange(
            identifiers: ids.map { CustomerIdentifier(name: $0.key, value: $0.value) }, atMilliseconds: 1)
        if let property { change.properties = [(property, Array("1".utf8))] }
        return change
    }

    private static func customersAreJoined(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        let customers = try storage.openCustomers()
        defer {
            customers.close()
            store.close()
        }
        func owner(_ name: String, _ value: String) throws -> StoredCustomer? {
            try customers.owner(of: CustomerIdentifier(name: name, value: value), appID: "shop")
        }
        for customer in [
            change(["cookie": "c-1"], "seen"), change(["registered": "ada"], "paid"),
            change(["registered": "ada", "cookie": "c-1"]), change(["registered": "bob", "cookie": "c-2"]),
        ] {
            _ = try append([], customers: [customer], to: store)
        }
        let ada = try unwrap(try owner("registered", "ada"), "a customer is found by the hard id")
        try expect(try owner("cookie", "c-1") == ada, "a device joins the customer who has signed in on it")
        for property in ["seen", "paid"] {
            try expect(
                try customers.property(property, of: ada) == "1", "a joined customer keeps \(property)")
        }
        try expect(
            try Set(customers.identifiers(of: ada).map(\.value)) == ["ada", "c-1"],
            "a customer's ids are listed")
        try expect(try owner("registered", "bob") != ada, "two hard ids are two customers")
        _ = try append([], customers: [change(["registered": "bob", "cookie": "c-1"])], to: store)
        try expect(try owner("registered", "ada") == ada, "two hard ids are never joined")
        try expect(
            try customers.owner(of: CustomerIdentifier(name: "registered", value: "ada"), appID: "kiosk")
                == nil,
            "another app knows nobody")
    }

    private static func aPersonIsForgotten(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let ada = CustomerIdentifier(name: "registered", value: "ada")
        _ = try append(
            [event("m", user: "ada"), event("n", user: "bob")],
            customers: [change(["registered": "ada", "cookie": "c-1"], "paid")], to: store)
        _ = try append([event("o", device: "c-1")], to: store)
        let record = try unwrap(try storage.people.find(ada, in: "shop"), "a person is found")
        try expect(record.events == 2 && record.properties.count == 1, "with events and properties")
        let deletion = try storage.people.delete(ada, in: "shop")
        try expect(deletion.hasProfile && deletion.events == 2, "all of it is deleted")
        try expect(try storage.people.find(ada, in: "shop") == nil, "nothing of it is left")
        try expect(try storage.log.count() == 1, "what belongs to others stays")
    }
}

// MARK: Control

extension StorageConformance {
    private static func settingsAreSeen(_ storage: any Storage) throws {
        let one = try storage.openControl(as: Operator(name: "ada", role: "owner"))
        let other = try storage.openControl(as: .account)
        _ = try one.createApp(id: "shop")
        _ = try one.createApp(id: "kiosk")
        try expect(try other.tokenRules(of: "shop") == TokenRules(), "what was not set is standard")
        var rules = TokenRules()
        rules.accessSeconds = 60
        try one.setTokenRules(rules, for: "shop")
        try expect(try other.tokenRules(of: "shop") == rules, "what was set is seen by others")
        try expect(try other.tokenRules(of: "kiosk") == TokenRules(), "and holds for that app alone")
        try one.setKeySource(url: "https://keys.example/", of: "shop")
        try one.setKeySource(url: nil, of: "shop")
        try expect(
            try other.settingIfSet(KeySources.self, of: "shop") == nil, "what was taken away is forgotten")
        do {
            try one.setTokenRules(rules, for: "none")
            throw Violation(description: "something was set for an app that is not there")
        } catch let error as GatewayError {
            try expect(error.code == .notFound, "an app that is not there is not found")
        }
        do {
            _ = try other.createApp(id: "shop")
            throw Violation(description: "two apps have one id")
        } catch let error as GatewayError {
            try expect(error.code == .conflict, "an id that is taken is a conflict")
        }
        try expect(try one.apps().map(\.id) == ["kiosk", "shop"], "apps are listed by id")
    }

    private static func theAuditLogIsAChain(_ storage: any Storage) throws {
        let one = try storage.openControl(as: Operator(name: "ada", role: "owner"))
        let other = try storage.openControl(as: Operator(name: "bob", role: "operator"))
        _ = try one.createApp(id: "shop")
        try other.setEnforcement(.required, for: "shop")
        try one.renameApp("shop", to: "The shop")
        let entries = try one.auditLog.entries(limit: 9)
        try expect(
            entries.map(\.action) == ["app.rename", "enforcement.set", "app.create"], "the newest comes first"
        )
        try expect(entries.map(\.actor) == ["ada", "bob", "ada"], "each in the name of who did it")
        try expect(entries.map(\.seq) == [3, 2, 1], "numbers count up from 1")
        try expect(
            zip(entries, entries.dropFirst()).allSatisfy { $0.previousHash == $1.hash },
            "each entry carries the hash of the one before")
        let (count, brokenAt) = try other.auditLog.verify()
        try expect(count == 3 && brokenAt == nil, "the chain is whole")
        do { try one.renameApp("none", to: "x") } catch {}
        try expect(try one.auditLog.entries(limit: 9).count == 3, "what has failed leaves no entry")
    }
}

// MARK: Sessions

extension StorageConformance {
    private static let tick: Int64 = 1_000

    private static func open(_ store: SessionStore, client: String? = nil) throws -> (Session, RefreshToken) {
        try store.perform { table in
            try table.open(
                .init(appID: "shop", subject: "ada", clientID: client, rules: TokenRules()), at: 0)
        }
    }

    private static func exchange(
        _ token: RefreshToken, _ store: SessionStore, at now: Int64
    ) throws -> RefreshToken? {
        try store.perform { table in
            let presentation = SessionTable.Presentation(now: now, rules: { _ in TokenRules() })
            guard case .granted(_, let child) = try table.exchange(token, presentation) else { return nil }
            return child
        }
    }

    private static func refreshTokensAreExchangedOnce(_ storage: any Storage) throws {
        let key = try storage.openSecrets().refreshKey()
        try expect(try storage.openSecrets().refreshKey() == key, "the key of refresh tokens stays the same")
        let store = try storage.openSessions(refreshKey: key)
        defer { store.close() }
        let (session, first) = try open(store)
        let second = try unwrap(try exchange(first, store, at: tick), "a new token is exchanged")
        try expect(
            try exchange(first, store, at: 2 * tick)?.text == second.text,
            "repeated at once, it gives the same token again")
        let third = try unwrap(try exchange(second, store, at: 3 * tick), "its child is exchanged")
        try expect(try exchange(first, store, at: 4 * tick) == nil, "an older one is a copy")
        try expect(try exchange(third, store, at: 5 * tick) == nil, "a copy ends the session")
        let ended = try store.perform { try $0.session(id: session.id) }
        try expect(ended?.revocation == .reuse, "and the session says why")
    }

    private static func whatHasEndedStaysEnded(_ storage: any Storage) throws {
        let key = try storage.openSecrets().refreshKey()
        let store = try storage.openSessions(refreshKey: key)
        let (session, token) = try open(store)
        let assertion = SpentAssertion(clientID: "c", id: "a", expiresMilliseconds: 10 * tick)
        try expect(try store.perform { try $0.spend(assertion) }, "an assertion is taken")
        _ = try store.perform { try $0.end(id: session.id, .operator, at: tick) }
        store.close()
        let again = try storage.openSessions(refreshKey: key)
        defer { again.close() }
        try expect(try exchange(token, again, at: 2 * tick) == nil, "an ended session gives no token")
        try expect(try !again.perform { try $0.spend(assertion) }, "an assertion is taken once")
        let ids = try again.perform { try $0.revokedIDs(after: 0, at: tick) }
        try expect(ids == [session.id], "what was ended is told")
    }
}

// MARK: Backup

extension StorageConformance {
    private static func aCopyIsAStorage(_ storage: any Storage, _ restore: Restore) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "copies-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let control = try storage.openControl(as: Operator(name: "ada", role: "owner"))
        _ = try control.createApp(id: "shop")
        let key = try storage.openSecrets().refreshKey()
        let sessions = try storage.openSessions(refreshKey: key)
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer {
            store.close()
            sessions.close()
        }
        let (_, token) = try open(sessions)
        _ = try append(
            [event("m", user: "ada"), event("n", user: "bob")], customers: [change(["registered": "ada"])],
            to: store)
        let backup = try storage.backUp(in: folder.path, floorBytes: 0)
        try expect(backup.events == 2, "a copy says how many events it holds")
        _ = try append([event("o", user: "ada")], to: store)
        _ = try control.createApp(id: "kiosk")

        let restored = try restore(backup)
        try expect(try restored.log.count() == 2, "a copy has the events of its moment")
        let apps = try restored.openControl(as: .account)
        try expect(try apps.apps().map(\.id) == ["shop"], "and the apps")
        let (entries, brokenAt) = try apps.auditLog.verify()
        try expect(entries == 1 && brokenAt == nil, "and the audit log, whole")
        let ada = CustomerIdentifier(name: "registered", value: "ada")
        try expect(try restored.people.find(ada, in: "shop") != nil, "and the customers")
        let restoredKey = try restored.openSecrets().refreshKey()
        try expect(restoredKey == key, "and the keys of the token service")
        let restoredSessions = try restored.openSessions(refreshKey: restoredKey)
        defer { restoredSessions.close() }
        try expect(try exchange(token, restoredSessions, at: tick) != nil, "and the sessions")
        let restoredStore = try restored.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { restoredStore.close() }
        let again = try append(
            [event("m", user: "ada"), event("o", user: "ada")], to: restoredStore)
        try expect(again.duplicates == 1 && again.accepted == 1, "and goes on from there")
        try expect(try storage.log.count() == 3, "what was copied goes on by itself")
    }
}
