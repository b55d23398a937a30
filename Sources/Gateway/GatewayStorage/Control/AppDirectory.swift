internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import CountersignSQLite
package import Foundation
public import GatewayModel

/// The apps of a data directory or database, with their keys and settings, and access to the other control stores.
///
/// Any process may write. A running gateway loads a change within a second.
public final class AppDirectory: ControlStore {
    /// The maximum number of keys of an app.
    public static let maximumKeys = 3

    package let database: any SQLDatabase
    package let actor: Operator
    package let now: @Sendable () -> Date

    /// Opens the app directory, and creates the folder and the file if necessary.
    ///
    /// - Parameters:
    ///   - dataDirectory: The gateway's data directory.
    ///   - actor: The author of changes, for the audit log.
    /// - Throws: `dataDirectory`, `storage`, or `conflict` if another version wrote the file and it cannot be migrated.
    public convenience init(
        dataDirectory: String, actor: Operator = .account
    ) throws(GatewayError) {
        let path = try DataDirectory(path: dataDirectory).file("control.sqlite")
        let now: @Sendable () -> Date = { Date() }
        self.init(try ControlDatabase.open(path, at: now()), actor: actor, now: now)
    }

    package init(_ database: any SQLDatabase, actor: Operator, now: @escaping @Sendable () -> Date) {
        self.database = database
        self.actor = actor
        self.now = now
    }

    package func acting(as actor: Operator) -> AppDirectory {
        AppDirectory(database, actor: actor, now: now)
    }

    /// Runs `body` in an exclusive transaction. After a conflict, `body` runs again from its start.
    package func transaction<Result>(_ body: (AppDirectory) throws -> Result) throws -> Result {
        try database.alone { try body(AppDirectory($0, actor: actor, now: now)) }
    }

    package var isInTransaction: Bool { database is OpenTransaction }

    // MARK: Other stores

    /// The clients of the token service.
    public var clients: ClientStore { ClientStore(database: database, actor: actor, now: now) }
    package var projects: ProjectStore { ProjectStore(database: database, actor: actor, now: now) }
    package var admins: AdminStore { AdminStore(database: database, actor: actor, now: now) }
    package var apiTokens: APITokenStore { APITokenStore(database: database, actor: actor, now: now) }
    package var alerts: AlertStore { AlertStore(database: database, actor: actor, now: now) }
    package var webhooks: WebhookStore { WebhookStore(database: database, actor: actor, now: now) }
    package var streams: StreamStore { StreamStore(database: database, actor: actor, now: now) }
    package var restrictions: RestrictionStore {
        RestrictionStore(database: database, actor: actor, now: now)
    }
    package var auditLog: AuditLog { AuditLog(database: database, actor: actor, now: now) }

    // MARK: Apps

    /// All apps, by id.
    ///
    /// - Throws: `storage`.
    public func apps() throws(GatewayError) -> [App] {
        try read { try Self.apps(nil, $0) }
    }

    /// The app with this id.
    ///
    /// - Throws: `notFound`, `storage`.
    public func app(id: String) throws(GatewayError) -> App {
        try read { try Self.app(id, $0) }
    }

    /// Creates an app, with enforcement disabled.
    ///
    /// - Parameters:
    ///   - id: 1 to 64 lower-case letters, digits, `-` and `_`, not beginning with `-`.
    ///   - name: The displayed name; the id if nil.
    /// - Returns: The app and its write key.
    /// - Throws: `invalid`, `conflict`, `storage`.
    public func createApp(id: String, name: String? = nil) throws(GatewayError) -> (
        app: App, writeKey: String
    ) {
        guard Self.isWord(id), id == id.lowercased(), GivenName.isUsable(id) else {
            throw GatewayError(
                .invalid,
                "an app's id must have 1 to 64 lower-case letters, digits, - and _, and must not begin with -"
            )
        }
        if let name { try Self.check(appName: name) }
        let writeKey = Self.newWriteKey()
        let now = nowMilliseconds
        try write { connection in
            guard try connection.first("SELECT 1 FROM app WHERE id = ?", .text(id), row: { _ in true }) == nil
            else {
                throw GatewayError(.conflict, "there is already an app \(id); choose another id")
            }
            let projects = try SettingTable(connection: connection).all(ProjectSettings.self)
            if let other = projects.first(where: { $0.value.token == id }) {
                throw GatewayError(
                    .conflict, "\(id) is the project token of the app \(other.key); choose another id")
            }
            if let deletion = try Self.deletions(connection).first(where: { $0.appID == id }) {
                throw deletion.conflict
            }
            try connection.run(
                "INSERT INTO app (id, name, created_ms) VALUES (?, ?, ?)", .text(id), .text(name ?? id),
                .integer(now))
            try connection.run(
                "INSERT INTO write_key (hash, app_id, created_ms, prefix, text) VALUES (?, ?, ?, ?, ?)",
                .blob(SHA256.digest(writeKey)), .text(id), .integer(now),
                .text(Self.prefix(ofWriteKey: writeKey)), .text(writeKey))
            try audit(
                connection, "app.create", id, app: id,
                after: ["id": .string(id), "name": .string(name ?? id)])
        }
        return (try app(id: id), writeKey)
    }

    /// Adds a public key in the first free slot. The same key may serve several apps.
    ///
    /// - Parameters:
    ///   - text: PEM (SPKI, PKCS#1 or a certificate) or a JWK.
    ///   - description: The operator's note; may be empty.
    ///   - appID: The app.
    /// - Returns: The stored key.
    /// - Throws: `invalid` when the text is not a usable public key, `conflict` when the app already has the
    ///   key or has three keys, `notFound`, `storage`.
    public func addKey(
        _ text: String, description: String = "", to appID: String
    ) throws(GatewayError) -> AppKey {
        _ = try app(id: appID)
        let key: PublicKey
        do {
            key = try PublicKey(text: text)
        } catch {
            throw GatewayError(.invalid, error.reason)
        }
        return try write { try add(key, text: text, description: description, to: appID, $0) }
    }

    /// Adds all usable keys of a JWK Set (RFC 7517, section 5) that the app does not have yet. After an
    /// error, no key is added.
    ///
    /// - Parameters:
    ///   - json: The set as JSON. Unusable keys are ignored, as section 5 recommends.
    ///   - appID: The app.
    /// - Returns: The added keys, in the order of the set.
    /// - Throws: `invalid` when the text is not a JWK Set or has no usable key. `conflict` when the app would
    ///   have more than three keys. `notFound`, `storage`.
    public func importKeys(fromJWKSet json: String, to appID: String) throws(GatewayError) -> [AppKey] {
        let keys: [PublicKey]
        do {
            keys = try JWKSet(json: json).keys
        } catch {
            throw GatewayError(.invalid, error.reason)
        }
        guard !keys.isEmpty else {
            throw GatewayError(
                .invalid, "the JWK Set has no usable public key; each needs kty and its members")
        }
        return try write { connection in
            var present = BytewiseSet(try Self.keys(of: appID, connection).map(\.key.id))
            return try keys.filter { present.insert($0.thumbprint).inserted }.map { key in
                try add(key, text: key.jwk, description: key.kid ?? "", to: appID, connection)
            }
        }
    }

    private func add(
        _ key: PublicKey, text: String, description: String, to appID: String, _ connection: any SQLConnection
    ) throws -> AppKey {
        let app = try Self.app(appID, connection)
        let id = key.thumbprint
        guard !app.keys.contains(where: { $0.id == id }) else {
            throw GatewayError(.conflict, "the app \(appID) already has this key (\(id))")
        }
        guard app.keys.count < Self.maximumKeys, let slot = AppKey.Slot(rawValue: app.keys.count + 1) else {
            throw GatewayError(
                .conflict,
                "the app \(appID) has \(Self.maximumKeys) keys, which is the maximum; delete one first"
            )
        }
        let added = nowMilliseconds
        try connection.run(
            """
            INSERT INTO public_key (app_id, id, slot, description, text, added_ms) VALUES (?, ?, ?, ?, ?, ?)
            """, .text(appID), .text(id),
            .integer(Int64(slot.rawValue)), .text(description), .text(text), .integer(added))
        let kept = AppKey(
            id: id, slot: slot, description: description, text: text, addedMilliseconds: added)
        try audit(connection, "key.add", id, app: appID, after: kept.json)
        return kept
    }

    /// Makes a key the primary key. The other keys follow in their order.
    ///
    /// - Throws: `notFound`, `storage`.
    public func makePrimary(keyID: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let keys = try Self.keys(of: appID, connection).map(\.key)
            guard let chosen = keys.first(where: { $0.id == keyID }) else { throw Self.noKey(keyID, appID) }
            try Self.renumber([chosen] + keys.filter { $0.id != keyID }, of: appID, connection)
            guard chosen.slot != .primary else { return }
            var after = chosen
            after.slot = .primary
            try audit(connection, "key.primary", keyID, app: appID, before: chosen.json, after: after.json)
        }
    }

    /// Deletes a key. The keys in later slots move up by one slot.
    ///
    /// - Throws: `conflict` for the primary key while another key exists, `notFound`, `storage`.
    public func deleteKey(keyID: String, of appID: String) throws(GatewayError) {
        try write { connection in
            let keys = try Self.keys(of: appID, connection).map(\.key)
            guard let chosen = keys.first(where: { $0.id == keyID }) else { throw Self.noKey(keyID, appID) }
            guard chosen.slot != .primary || keys.count == 1 else {
                throw GatewayError(
                    .conflict,
                    "the primary key cannot be deleted while there is another; make another primary first")
            }
            try connection.run(
                "DELETE FROM public_key WHERE app_id = ? AND id = ?", .text(appID), .text(keyID))
            try Self.renumber(keys.filter { $0.id != keyID }, of: appID, connection)
            try audit(connection, "key.delete", keyID, app: appID, before: chosen.json)
        }
    }

    package func describeKey(keyID: String, of appID: String, as description: String) throws(GatewayError) {
        try write { connection in
            let keys = try Self.keys(of: appID, connection).map(\.key)
            guard let chosen = keys.first(where: { $0.id == keyID }) else { throw Self.noKey(keyID, appID) }
            try connection.run(
                "UPDATE public_key SET description = ?3 WHERE app_id = ?1 AND id = ?2", .text(appID),
                .text(keyID), .text(description))
            var after = chosen
            after.description = description
            try audit(connection, "key.describe", keyID, app: appID, before: chosen.json, after: after.json)
        }
    }

    package func renameApp(_ appID: String, to name: String) throws(GatewayError) {
        try Self.check(appName: name)
        try write { connection in
            let before = try Self.app(appID, connection)
            try connection.run("UPDATE app SET name = ?2 WHERE id = ?1", .text(appID), .text(name))
            try audit(
                connection, "app.rename", appID, app: appID, before: .string(before.name),
                after: .string(name))
        }
    }

    private static func check(appName name: String) throws(GatewayError) {
        guard (1...200).contains(name.utf8.count), name.isPrintable else {
            throw GatewayError(.invalid, "an app's name must have 1 to 200 bytes of printable text")
        }
    }

    // MARK: For the gateway

    package func version() throws(GatewayError) -> Int64 { try database.version() }

    package func writeKeys() throws(GatewayError) -> [(hash: [UInt8], appID: String)] {
        try read { connection in
            try connection.all("SELECT hash, app_id FROM write_key") { row in (row.blob(0), row.text(1)) }
        }
    }

    // MARK: Rows

    private static func app(_ id: String, _ connection: any SQLConnection) throws -> App {
        guard let app = try apps(id, connection).first else { throw noApp(id) }
        return app
    }

    /// The app with this id, or all apps ordered by id.
    private static func apps(_ id: String?, _ connection: any SQLConnection) throws -> [App] {
        var keys: BytewiseDictionary<[AppKey]> = [:]
        for (appID, key) in try self.keys(of: id, connection) { keys[appID, default: []].append(key) }
        let table = SettingTable(connection: connection)
        let policies = try table.all(ClaimsPolicy.self, of: id)
        let plans = try table.all(EnforcementPlan.self, of: id)
        return try connection.all(
            "SELECT id, name, created_ms FROM app \(id == nil ? "" : "WHERE id = ?1") ORDER BY id",
            id.map { [.text($0)] } ?? []
        ) { row in
            let id = row.text(0)
            return App(
                id: id, name: row.text(1), enforcement: plans[id]?.state ?? .disabled,
                policy: policies[id] ?? ClaimsPolicy(), keys: keys[id] ?? [],
                createdMilliseconds: row.int64(2))
        }
    }

    /// The keys of one app or of all apps, in the order of their slots.
    private static func keys(
        of appID: String?, _ connection: any SQLConnection
    ) throws -> [(appID: String, key: AppKey)] {
        try connection.all(
            """
            SELECT app_id, id, slot, description, text, added_ms FROM public_key
            \(appID == nil ? "" : "WHERE app_id = ?1") ORDER BY slot
            """, appID.map { [.text($0)] } ?? []
        ) { row in
            let key = AppKey(
                id: row.text(1), slot: AppKey.Slot(rawValue: row.int(2)) ?? .tertiary,
                description: row.text(3), text: row.text(4), addedMilliseconds: row.int64(5))
            return (row.text(0), key)
        }
    }

    private static func renumber(_ keys: [AppKey], of appID: String, _ connection: any SQLConnection) throws {
        for (index, key) in keys.enumerated() {
            try connection.run(
                "UPDATE public_key SET slot = ? WHERE app_id = ? AND id = ?", .integer(Int64(index + 1)),
                .text(appID), .text(key.id))
        }
    }

    static func newWriteKey() -> String {
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
        var random = SystemRandomNumberGenerator()
        // 32 of 62 characters: 190 bits of entropy.
        return "wk_"
            + String((0..<32).map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] })
    }

    /// Enough characters to identify a key, but not to use it: 28 are missing.
    static func prefix(ofWriteKey text: String) -> String { String(text.prefix(7)) }

    private static func noKey(_ id: String, _ appID: String) -> GatewayError {
        GatewayError(
            .notFound, "the app \(appID) has no key \(id)")
    }
}
