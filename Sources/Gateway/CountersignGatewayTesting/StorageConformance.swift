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
                description: "an event is stored once by app, sender and message id",
                body: eventsAreStoredOnce),
            StorageConformance(
                description: "an event is read as it was stored", body: eventsAreReadAsStored),
            StorageConformance(
                description: "an event is found by a message id with an old date",
                body: anEventIsFoundByAnOldMessageID),
            StorageConformance(
                description: "an event identified by its content is stored once for each user",
                body: contentIdentifiesEvents),
            StorageConformance(
                description: "pages return events in order", body: eventsAreReadInOrder),
            StorageConformance(
                description: "a page scans a bounded number of events and has a next position",
                body: pagesAreBounded),
            StorageConformance(
                description: "the verdict of an event is stored and can filter events",
                body: eventsAreReadByTheirVerdict),
            StorageConformance(
                description: "claims are stored, and a claim can filter events", body: eventsAreReadByAClaim),
            StorageConformance(
                description: "a closed store keeps its events and accepts no more",
                body: aClosedStoreRejectsEvents),
            StorageConformance(
                description: "retention deletes old events and customers", body: retentionDeletes),
            StorageConformance(
                description: "key uses are summed", body: keyUsesAddUp),
            StorageConformance(
                description: "ids of one customer are merged, ids of two customers are not",
                body: customersAreMerged),
            StorageConformance(
                description: "the data of a customer is found and deleted", body: customersAreDeleted),
            StorageConformance(
                description: "a changed or removed setting is visible through another connection",
                body: settingsAreVisible),
            StorageConformance(description: "audit entries form a hash chain", body: theAuditLogIsAChain),
            StorageConformance(
                description: "a refresh token is exchanged once", body: refreshTokensAreExchangedOnce),
            StorageConformance(
                description: "ended token families and used assertions stay ended",
                body: endedFamiliesStayEnded),
            StorageConformance(
                description: "a backup made during use can be restored", restoring: backupsAreRestored),
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

    private static func customersAreMerged(_ storage: any Storage) throws {
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
        try expect(try owner("cookie", "c-1") == ada, "a cookie is merged into the customer")
        for property in ["seen", "paid"] {
            try expect(
                try customers.property(property, of: ada) == "1", "a merged customer keeps \(property)")
        }
        try expect(
            try Set(customers.identifiers(of: ada).map(\.value)) == ["ada", "c-1"],
            "a customer's ids are listed")
        try expect(try owner("registered", "bob") != ada, "two hard ids are two customers")
        _ = try append([], customers: [change(["registered": "bob", "cookie": "c-1"])], to: store)
        try expect(try owner("registered", "ada") == ada, "two hard ids are never merged")
        try expect(
            try customers.owner(of: CustomerIdentifier(name: "registered", value: "ada"), appID: "kiosk")
                == nil,
            "another app does not have the customer")
    }

    private static func customersAreDeleted(_ storage: any Storage) throws {
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { store.close() }
        let ada = CustomerIdentifier(name: "registered", value: "ada")
        _ = try append(
            [event("m", user: "ada"), event("n", user: "bob")],
            customers: [change(["registered": "ada", "cookie": "c-1"], "paid")], to: store)
        _ = try append([event("o", device: "c-1")], to: store)
        let record = try unwrap(try storage.people.find(ada, in: "shop"), "a customer is found")
        try expect(record.events == 2 && record.properties.count == 1, "events and properties are found")
        let deletion = try storage.people.delete(ada, in: "shop")
        try expect(deletion.hasProfile && deletion.events == 2, "the profile and its events are deleted")
        try expect(try storage.people.find(ada, in: "shop") == nil, "a deleted customer is not found")
        try expect(try storage.log.count() == 1, "events of other customers stay")
    }
}

// MARK: Control

extension StorageConformance {
    private static func settingsAreVisible(_ storage: any Storage) throws {
        let one = try storage.openControl(as: Operator(name: "ada", role: "owner"))
        let other = try storage.openControl(as: .account)
        _ = try one.createApp(id: "shop")
        _ = try one.createApp(id: "kiosk")
        try expect(try other.tokenRules(of: "shop") == TokenRules(), "an unset setting has its default")
        var rules = TokenRules()
        rules.accessSeconds = 60
        try one.setTokenRules(rules, for: "shop")
        try expect(try other.tokenRules(of: "shop") == rules, "another connection reads the change")
        try expect(try other.tokenRules(of: "kiosk") == TokenRules(), "a setting applies to one app only")
        try one.setKeySource(url: "https://keys.example/", of: "shop")
        try one.setKeySource(url: nil, of: "shop")
        try expect(
            try other.settingIfSet(KeySources.self, of: "shop") == nil, "a removed setting is unset")
        do {
            try one.setTokenRules(rules, for: "none")
            throw Violation(description: "a setting of an unknown app was stored")
        } catch let error as GatewayError {
            try expect(error.code == .notFound, "an unknown app is not found")
        }
        do {
            _ = try other.createApp(id: "shop")
            throw Violation(description: "two apps have one id")
        } catch let error as GatewayError {
            try expect(error.code == .conflict, "a duplicate id is a conflict")
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
            entries.map(\.action) == ["app.rename", "enforcement.set", "app.create"], "newest entry first"
        )
        try expect(entries.map(\.actor) == ["ada", "bob", "ada"], "each entry has its actor")
        try expect(entries.map(\.seq) == [3, 2, 1], "sequence numbers count up from 1")
        try expect(
            zip(entries, entries.dropFirst()).allSatisfy { $0.previousHash == $1.hash },
            "each entry has the hash of the previous entry")
        let (count, brokenAt) = try other.auditLog.verify()
        try expect(count == 3 && brokenAt == nil, "the chain is intact")
        do { try one.renameApp("none", to: "x") } catch {}
        try expect(try one.auditLog.entries(limit: 9).count == 3, "a failed change writes no entry")
    }
}

// MARK: Token families

extension StorageConformance {
    private static let tick: Int64 = 1_000

    private static func open(_ store: TokenFamilyStore) throws -> (TokenFamily, RefreshToken) {
        try store.perform { table in
            try table.open(.init(appID: "shop", subject: "ada", rules: TokenRules()), at: 0)
        }
    }

    private static func exchange(
        _ token: RefreshToken, _ store: TokenFamilyStore, at now: Int64
    ) throws -> RefreshToken? {
        try store.perform { table in
            let presentation = TokenFamilyTable.Presentation(now: now, rules: { _ in TokenRules() })
            guard case .granted(_, let child) = try table.exchange(token, presentation) else { return nil }
            return child
        }
    }

    private static func refreshTokensAreExchangedOnce(_ storage: any Storage) throws {
        let key = try storage.openSecrets().refreshKey()
        try expect(try storage.openSecrets().refreshKey() == key, "the key of refresh tokens stays the same")
        let store = try storage.openTokenFamilies(refreshKey: key)
        defer { store.close() }
        let (family, first) = try open(store)
        let second = try unwrap(try exchange(first, store, at: tick), "a new token is exchanged")
        try expect(
            try exchange(first, store, at: 2 * tick)?.text == second.text,
            "an immediate retry returns the same token")
        let third = try unwrap(try exchange(second, store, at: 3 * tick), "the returned token is exchanged")
        try expect(try exchange(first, store, at: 4 * tick) == nil, "an older token is rejected")
        try expect(try exchange(third, store, at: 5 * tick) == nil, "reuse of a token ends the token family")
        let ended = try store.perform { try $0.family(id: family.id) }
        try expect(ended?.revocation == .reuse, "the token family has the reason of its end")
    }

    private static func endedFamiliesStayEnded(_ storage: any Storage) throws {
        let key = try storage.openSecrets().refreshKey()
        let store = try storage.openTokenFamilies(refreshKey: key)
        let (family, token) = try open(store)
        let assertion = SpentAssertion(clientID: "c", id: "a", expiresMilliseconds: 10 * tick)
        try expect(try store.perform { try $0.spend(assertion) }, "a new assertion is accepted")
        _ = try store.perform { try $0.end(id: family.id, .operator, at: tick) }
        store.close()
        let again = try storage.openTokenFamilies(refreshKey: key)
        defer { again.close() }
        try expect(try exchange(token, again, at: 2 * tick) == nil, "an ended token family gives no token")
        try expect(try !again.perform { try $0.spend(assertion) }, "a used assertion is rejected")
        let ids = try again.perform { try $0.revokedIDs(after: 0, at: tick) }
        try expect(ids == [family.id], "revoked token families are listed")
    }
}

// MARK: Backup

extension StorageConformance {
    private static func backupsAreRestored(_ storage: any Storage, _ restore: Restore) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "copies-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let control = try storage.openControl(as: Operator(name: "ada", role: "owner"))
        _ = try control.createApp(id: "shop")
        let key = try storage.openSecrets().refreshKey()
        let families = try storage.openTokenFamilies(refreshKey: key)
        let store = try storage.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer {
            store.close()
            families.close()
        }
        let (_, token) = try open(families)
        _ = try append(
            [event("m", user: "ada"), event("n", user: "bob")], customers: [change(["registered": "ada"])],
            to: store)
        let backup = try storage.backUp(in: folder.path, floorBytes: 0)
        try expect(backup.events == 2, "a backup has the number of its events")
        _ = try append([event("o", user: "ada")], to: store)
        _ = try control.createApp(id: "kiosk")

        let restored = try restore(backup)
        try expect(try restored.log.count() == 2, "only events before the backup are restored")
        let apps = try restored.openControl(as: .account)
        try expect(try apps.apps().map(\.id) == ["shop"], "apps are restored")
        let (entries, brokenAt) = try apps.auditLog.verify()
        try expect(entries == 1 && brokenAt == nil, "the audit log is restored intact")
        let ada = CustomerIdentifier(name: "registered", value: "ada")
        try expect(try restored.people.find(ada, in: "shop") != nil, "customers are restored")
        let restoredKey = try restored.openSecrets().refreshKey()
        try expect(restoredKey == key, "the keys of the token service are restored")
        let restoredFamilies = try restored.openTokenFamilies(refreshKey: restoredKey)
        defer { restoredFamilies.close() }
        try expect(try exchange(token, restoredFamilies, at: tick) != nil, "token families are restored")
        let restoredStore = try restored.openEvents(EventStoreOptions(pendingBytes: 1 << 20))
        defer { restoredStore.close() }
        let again = try append(
            [event("m", user: "ada"), event("o", user: "ada")], to: restoredStore)
        try expect(again.duplicates == 1 && again.accepted == 1, "restored events are duplicates")
        try expect(try storage.log.count() == 3, "the original storage is not affected")
    }
}
