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
    package struct Violation: Error, CustomStringConvertible {
        package let description: String
    }

    package typealias Restore = (Backup) throws -> any Storage

    package let description: String
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
    package typealias Wait = @Sendable () throws -> Void

    @TaskLocal static var wait: Wait = {}

    /// Throws ``Violation``, or an error of the engine.
    package func run(
        on storage: any Storage, wait: @escaping Wait = {}, restore: Restore
    ) throws {
        try Self.$wait.withValue(wait) { try body(storage, restore) }
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

// MARK: Customers

extension StorageConformance {
    static func change(_ ids: KeyValuePairs<String, String>, _ property: String? = nil)
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
