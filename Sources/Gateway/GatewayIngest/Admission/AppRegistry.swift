package import CountersignCore
package import CountersignJOSE
package import Foundation
package import GatewayModel
package import GatewayStorage

/// The apps in memory, refreshed after changes in the directory.
///
/// A request fetches its app once, so it is verified with one set of keys even if the app changes meanwhile.
package final class AppRegistry: Sendable {
    private let directory: AppDirectory
    /// The cache of verified tokens. A changed app does not find entries that were made before the change.
    private let verifiedTokens: VerifiedTokenCache
    private let apps = Lock(Apps())
    /// Versions of the loaded apps. Locked while refreshing, so that a slow refresh cannot overwrite a newer
    /// one.
    private let seen = Lock<(version: Int64?, auditHead: [UInt8]?, publishedGeneration: Int)>((nil, nil, 0))
    package let health: RefreshHealth
    private let ticker = Ticker(queue: DispatchQueue(label: "app registry"), everySeconds: 0.2)
    /// The published key sets of apps, by app id, one set for each key source. A set stays in memory until its
    /// source changes.
    private let published = Lock<BytewiseDictionary<[RemoteJWKSet]>>([:])
    private let usedWriteKeys = Lock<[WriteKeyDigest: Int64]>([:])
    /// The uses of write keys that are in storage, and the time at which storage was last brought up to date.
    private let notedUses = Lock<(uses: [WriteKeyDigest: Int64], at: Date)>(([:], .distantPast))
    private let issued: IssuedTokens
    private let sharesKeys: Bool
    /// The number of gateways that share the limits of users.
    private let sharers: @Sendable () -> Int
    private let fetch: KeySourceFetch
    private let run: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let removed: @Sendable (BytewiseSet) -> Void
    private let reportKeys: KeyProblemReport
    private let now: @Sendable () -> Date

    private struct Apps {
        var byWriteKey: [WriteKeyDigest: AdmittedApp] = [:]
        var byProject: BytewiseDictionary<AdmittedApp> = [:]
        var byID: BytewiseDictionary<AdmittedApp> = [:]
        var clients: BytewiseDictionary<OAuthClient> = [:]
        var rules: BytewiseDictionary<AppRules> = [:]
        var origins: BytewiseSet = []
    }

    /// `sharesKeys` is true if other gateways store fetched key sets too. `sharers` is the number of gateways.
    /// `removed` receives the ids of deleted apps.
    package convenience init(
        directory: AppDirectory, issued: IssuedTokens = IssuedTokens(),
        cache: VerifiedTokenCache = VerifiedTokenCache(), sharesKeys: Bool = false,
        sharers: @escaping @Sendable () -> Int = { 1 },
        health: RefreshHealth = RefreshHealth(),
        removed: @escaping @Sendable (BytewiseSet) -> Void = { _ in },
        reportKeys: @escaping KeyProblemReport = { _, _ in }, now: @escaping @Sendable () -> Date
    ) {
        self.init(
            directory: directory, issued: issued, cache: cache, sharesKeys: sharesKeys, sharers: sharers,
            health: health, removed: removed, reportKeys: reportKeys, now: now,
            fetch: RemoteJWKSet.fetchOverHTTPS,
            run: Self.runAside)
    }

    init(
        directory: AppDirectory, issued: IssuedTokens = IssuedTokens(),
        cache: VerifiedTokenCache = VerifiedTokenCache(), sharesKeys: Bool = false,
        sharers: @escaping @Sendable () -> Int = { 1 }, health: RefreshHealth = RefreshHealth(),
        removed: @escaping @Sendable (BytewiseSet) -> Void = { _ in },
        reportKeys: @escaping KeyProblemReport = { _, _ in },
        now: @escaping @Sendable () -> Date, fetch: @escaping KeySourceFetch,
        run: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.directory = directory
        self.issued = issued
        verifiedTokens = cache
        self.removed = removed
        self.reportKeys = reportKeys
        self.now = now
        self.sharesKeys = sharesKeys
        self.sharers = sharers
        self.health = health
        self.fetch = fetch
        self.run = run
    }

    /// Receives an app and the reason why a fetch of its keys failed; nil when a fetch succeeded again.
    package typealias KeyProblemReport = @Sendable (_ appID: String, _ problem: String?) -> Void

    /// Fetches block on the network, so they have their own threads.
    private static let aside = DispatchQueue(label: "published keys", attributes: .concurrent)

    static let runAside: @Sendable (@escaping @Sendable () -> Void) -> Void = { aside.async(execute: $0) }

    /// Records that no known key verified a token of the app. A fetch of the app's key sets may then be due.
    package func noteUnknownKey(_ token: String?, of appID: String, from address: NetworkAddress?) {
        let sources = publishedKeys(of: appID)
        guard !sources.isEmpty, let token else { return }
        let keyID = (try? CompactJWS(parsing: token))?.keyID
        for keys in sources {
            keys.noteUnknownKey((keyID ?? "").utf8, from: address, at: now().timeIntervalSince1970)
        }
    }

    /// Starts the fetches of published key sets that are due. New keys are used as soon as they are fetched.
    func refreshPublished() {
        let instant = now().timeIntervalSince1970
        for keys in published.withLock({ $0.values.flatMap { $0 } }) {
            keys.refreshIfDue(at: instant, fetch: fetch) { [run] work in
                run { [self] in
                    work()
                    // After a failure the next periodic refresh loads the keys.
                    try? refresh()
                }
            }
        }
    }

    package func publishedKeys(of appID: String) -> [RemoteJWKSet] {
        published.withLock { $0[appID] ?? [] }
    }

    package func app(writeKey: String) -> AdmittedApp? {
        let digest = WriteKeyDigest(of: writeKey)
        guard let app = apps.withLock({ $0.byWriteKey[digest] }) else { return nil }
        let milliseconds = Milliseconds(now()).count
        usedWriteKeys.withLock { $0[digest] = milliseconds }
        return app
    }

    /// The last use of each write key since the gateway's start, in milliseconds since 1970, by key id.
    package var writeKeyUses: BytewiseDictionary<Int64> {
        let uses = usedWriteKeys.withLock { $0 }
        return BytewiseDictionary(
            uniqueKeysWithValues: uses.map { (WriteKey.identifier($0.key.bytes), $0.value) })
    }

    package func app(projectToken: some StringProtocol) -> AdmittedApp? {
        guard projectToken.utf8.count <= Self.longestID else { return nil }
        let token = String(projectToken)
        return apps.withLock { $0.byProject[token] }
    }

    /// The maximum size in bytes of an id that a client may look up. Ids and project tokens of apps are shorter.
    private static let longestID = 256

    package func app(id: String) -> AdmittedApp? {
        guard id.utf8.count <= Self.longestID else { return nil }
        return apps.withLock { $0.byID[id] }
    }

    /// The app in the audience of an access token issued by this gateway; nil for other tokens. The token is
    /// not verified.
    package func app(issuedFor token: String) -> AdmittedApp? {
        issued.unverifiedAudience(of: token).flatMap { app(id: $0) }
    }

    package func client(id: String) -> OAuthClient? {
        guard id.utf8.count <= Self.longestID else { return nil }
        return apps.withLock { $0.clients[id] }
    }

    /// The rules of all apps that have any, by id.
    package var rules: BytewiseDictionary<AppRules> { apps.withLock { $0.rules } }

    package func origins(of appID: String) -> BytewiseSet {
        BytewiseSet(apps.withLock { $0.rules[appID]?.origins } ?? [])
    }

    package var originsOfAllApps: BytewiseSet { apps.withLock { $0.origins } }

    /// The reason why the last check for changes failed; nil if it succeeded.
    package var problem: String? { health.problem }

    /// Starts to check for changes five times a second on its own thread.
    package func start() {
        health.begin()
        ticker.start { [weak self] in
            // After an error, the ticker repeats the check. Until then, the last loaded apps stay in use.
            guard let self else { return }
            do throws(GatewayError) {
                try checkForChanges()
                health.note(nil)
            } catch {
                health.note(error)
            }
        }
    }

    package func stop() {
        ticker.stop()
        // After an error, only the times of the keys' last uses are lost.
        try? noteWriteKeyUses()
    }

    /// Starts due fetches of published keys, loads changes, and stores the uses of write keys if that is due.
    func checkForChanges() throws(GatewayError) {
        refreshPublished()
        try refresh()
        if areUsesDue { try noteWriteKeyUses() }
    }

    /// Whether uses of write keys are to be stored now.
    ///
    /// A key's first use since the start, or a day after the stored use, is stored at once for other processes.
    /// Other uses are stored every five minutes, because each write makes the other gateways check for changes.
    private var areUsesDue: Bool {
        let noted = notedUses.withLock { $0 }
        if abs(now().timeIntervalSince(noted.at)) >= 300 { return true }
        return usedWriteKeys.withLock { uses in
            uses.contains { key, use in noted.uses[key].map { abs(use - $0) >= 86_400_000 } ?? true }
        }
    }

    private func noteWriteKeyUses() throws(GatewayError) {
        let uses = usedWriteKeys.withLock { $0 }
        let noted = notedUses.withLock { $0.uses }
        let changed = uses.filter { noted[$0.key] != $0.value }
        if !changed.isEmpty {
            try directory.noteWriteKeyUses(
                Dictionary(uniqueKeysWithValues: changed.map { ($0.key.bytes, $0.value) }))
        }
        let instant = now()
        notedUses.withLock { $0 = (uses, instant) }
    }

    /// Loads the apps if storage has changed since the last refresh. An app with unchanged values remains the
    /// same object and keeps its cache of verified tokens.
    package func refresh() throws(GatewayError) {
        try seen.withLock { seen throws(GatewayError) in
            let version = try directory.version()
            let generation = published.withLock { $0.values.joined().reduce(0) { $0 + $1.generation } }
            guard version != seen.version || generation != seen.publishedGeneration else { return }
            // Reads the head before the apps, so that the next refresh finds a change that is made meanwhile.
            let auditHead = try directory.auditLog.head()
            if auditHead == seen.auditHead, generation == seen.publishedGeneration {
                // The change has no audit entry, such as a sign-in, the use of an API token or an alert.
                // Every change by an operator has one.
                seen.version = version
                return
            }
            let loaded = try load()
            let before = apps.withLock { apps in
                defer { apps = loaded }
                return apps.byID.keys
            }
            issued.replaceClients(BytewiseSet(loaded.clients.keys))
            usedWriteKeys.withLock { uses in uses = uses.filter { loaded.byWriteKey[$0.key] != nil } }
            let gone = BytewiseSet(before.filter { loaded.byID[$0] == nil })
            if !gone.isEmpty { removed(gone) }
            seen = (version, auditHead, generation)
        }
    }

    private func load() throws(GatewayError) -> Apps {
        let projects = try directory.projects.all()
        let sources = try directory.settings(KeySources.self)
        let published = published.withLock { published in
            published = BytewiseDictionary(
                uniqueKeysWithValues: sources.map { appID, sources in
                    let keys = sources.all.map { source in
                        if let known = published[appID]?.first(where: { $0.source == source }) {
                            return known
                        }
                        let keys = RemoteJWKSet(
                            source: source, shared: SharedKeySet(in: directory, source: source, of: appID),
                            hasOthers: sharesKeys,
                            report: { [reportKeys] problem in reportKeys(appID, problem) })
                        keys.takeStored(at: now().timeIntervalSince1970)
                        return keys
                    }
                    return (appID, keys)
                })
            return published
        }
        var apps = Apps()
        let tokenRules = try directory.settings(TokenRules.self)
        let plans = try directory.settings(EnforcementPlan.self)
        let restrictions = try directory.restrictions.all()
        let before = self.apps.withLock { $0.byID }
        for app in try directory.apps() {
            let keys = RemoteJWKSet.entries(of: published[app.id] ?? [])
            let project = projects[app.id] ?? Project(settings: .standard(for: app.id))
            let rules = tokenRules[app.id] ?? TokenRules()
            let plan = plans[app.id] ?? EnforcementPlan()
            let digest = AdmittedApp.digest(
                app, published: keys, project: project, tokenRules: rules, plan: plan)
            let unchanged = before[app.id].flatMap { $0.loaded == digest ? $0 : nil }
            let loaded =
                unchanged
                ?? AdmittedApp(
                    app, published: keys, project: project, cache: verifiedTokens, tokenRules: rules,
                    issued: issued, plan: plan)
            let admitted = loaded.restricted(
                by: restrictions[app.id] ?? [], before: before[app.id]?.restrictions, sharers)
            apps.byID[app.id] = admitted
            // The default project token is the app's id. A token set by an operator takes precedence over a default.
            let holder = apps.byProject[admitted.project.settings.token]
            if holder == nil || admitted.project.settings.token != app.id {
                apps.byProject[admitted.project.settings.token] = admitted
            }
        }
        apps.rules = try directory.settings(AppRules.self)
        apps.origins = BytewiseSet(apps.rules.values.flatMap(\.origins))
        for (hash, appID) in try directory.writeKeys() {
            if let digest = WriteKeyDigest(bytes: hash) { apps.byWriteKey[digest] = apps.byID[appID] }
        }
        for client in try directory.clients.all() { apps.clients[client.id] = client }
        return apps
    }
}
