internal import CountersignCore
package import CountersignJOSE
internal import CountersignJSON
internal import GatewayHTTP
package import GatewayModel
internal import GatewayStorage

/// Fetches the document of a key source; called on its own thread.
typealias KeySourceFetch = @Sendable (KeySource) throws(OutboundRequest.Failure) -> [UInt8]

/// The keys that another server publishes for an app.
///
/// The last good set is stored, so it stays in use after a restart or a failed fetch. Gateways with a shared database
/// share the set, so they accept the same tokens. A set is fetched again after ten minutes, or earlier after a token
/// with an unknown key (``UnknownKeyBudget``). At most one fetch runs at a time.
package final class RemoteJWKSet: Sendable {
    static let maximumAgeSeconds = 600.0
    /// The minimum seconds between two fetches of a set that is too old, was never fetched or could not be stored.
    static let cooldownSeconds = 30.0
    /// The minimum seconds between two checks for sets that other gateways have fetched.
    static let sharedSeconds = 5.0
    /// Seconds after which an unchanged set is stored again, with the time of its last fetch.
    static let storedSeconds = 300.0
    private static let maximumBytes = 256 * 1024

    package let source: KeySource
    private let state = Lock(State())

    private struct State {
        var keys: [PublicKey] = []
        var fetchedAt: Double?
        var attemptedAt: Double?
        var sharedAt: Double?
        var isFetching = false
        var unknownKeys = UnknownKeyBudget()
        /// The time at which a set was last stored, and the generation of that set.
        var stored: (at: Double, generation: Int)?
        /// Whether the last fetched set could not be stored.
        var isUnstored = false
        var generation = 0
        var problem: String?
    }

    private let shared: SharedKeySet?
    /// Whether other gateways store sets too.
    private let hasOthers: Bool
    /// Receives the reason when fetches begin to fail or fail differently, and nil when they succeed again.
    private let report: @Sendable (String?) -> Void

    init(
        source: KeySource, shared: SharedKeySet? = nil, hasOthers: Bool = true,
        report: @escaping @Sendable (String?) -> Void = { _ in }
    ) {
        self.source = source
        self.shared = shared
        self.hasOthers = hasOthers
        self.report = report
    }

    private static let mostKeys = 16

    /// The keys of several sources for a ring. A key of several OpenID providers verifies the tokens of each.
    static func entries(of sources: [RemoteJWKSet]) -> [KeyRing.Entry] {
        var entries: [KeyRing.Entry] = []
        // Limits each source, because otherwise the keys of the last sources would not fit into the ring.
        let most = min(mostKeys, KeyRing.maximumPublished / max(1, sources.count))
        for source in sources {
            let issuers = source.source.issuer.map { [$0] } ?? []
            for key in source.keys.prefix(most) {
                guard let known = entries.firstIndex(where: { $0.id == key.thumbprint }) else {
                    entries.append(KeyRing.Entry(id: key.thumbprint, key: key, issuers: issuers))
                    continue
                }
                let before = entries[known].issuers
                let isOfAny = before.isEmpty || issuers.isEmpty
                entries[known] = KeyRing.Entry(
                    id: key.thumbprint, key: key, issuers: isOfAny ? [] : before + issuers)
            }
        }
        return entries
    }

    package var keys: [PublicKey] { state.withLock { $0.keys } }

    /// Incremented when a fetched or stored set replaces different keys.
    var generation: Int { state.withLock { $0.generation } }

    package var problem: String? { state.withLock { $0.problem } }

    /// The time of the last successful fetch by any gateway, in seconds since 1970; nil before the first.
    package var fetchedAt: Double? { state.withLock { $0.fetchedAt } }

    /// Records a token with an unknown key. `address` is the client's; nil for a client on this machine.
    func noteUnknownKey(_ keyID: some Sequence<UInt8>, from address: NetworkAddress?, at instant: Double) {
        state.withLock { $0.unknownKeys.note(keyID, from: address, at: instant) }
    }

    /// Starts a fetch if one is due, and returns immediately. `run` runs work on another thread.
    func refreshIfDue(
        at instant: Double, fetch: @escaping KeySourceFetch,
        run: (@escaping @Sendable () -> Void) -> Void
    ) {
        if shared != nil, hasOthers { readSharedIfDue(at: instant, run: run) }
        let isDue = state.withLock { state -> Bool in
            guard !state.isFetching, Self.isDue(state, at: instant) else { return false }
            state.isFetching = true
            state.unknownKeys.fetchBegins()
            state.attemptedAt = instant
            return true
        }
        guard isDue else { return }
        run { [self] in
            do {
                let json = String(decoding: try document(fetch), as: UTF8.self)
                let fetched = try JWKSet(json: json).keys
                finish(fetched, at: instant, problem: fetched.isEmpty ? "the set has no usable key" : nil)
                if !fetched.isEmpty { store(json, at: instant) }
            } catch {
                let reason =
                    (error as? OutboundRequest.Failure)?.reason ?? (error as? JOSEError)?.reason
                    ?? (error as? GatewayError)?.reason ?? "\(error)"
                finish(nil, at: instant, problem: reason)
            }
        }
    }

    /// Fetches the JWK Set. The metadata of an OpenID provider contains the URL of the set. Apart from a final `/`,
    /// its issuer must be the one in the metadata's own URL (OpenID Connect Discovery 1.0, section 4.3).
    private func document(_ fetch: KeySourceFetch) throws -> [UInt8] {
        let document = try fetch(source)
        guard let issuer = source.issuer else { return document }
        let metadata = try? StrictJSONParser(maximumBytes: Self.maximumBytes, maximumDepth: 16)
            .parse(bytes: document) { ($0["issuer"]?.string, $0["jwks_uri"]?.string) }
        guard case (let named?, let url?)? = metadata else {
            throw OutboundRequest.Failure(reason: "it is not JSON with issuer and jwks_uri")
        }
        guard named == issuer || named == issuer + "/" else {
            throw OutboundRequest.Failure(
                reason: "its issuer is not the URL before /.well-known; follow the URL of the issuer itself")
        }
        let keys = KeySource(url: url, allowsPrivateAddresses: source.allowsPrivateAddresses)
        do throws(GatewayError) {
            try keys.check()
        } catch {
            throw OutboundRequest.Failure(reason: "its jwks_uri cannot be used: \(error.reason)")
        }
        return try fetch(keys)
    }

    private static func isDue(_ state: State, at instant: Double) -> Bool {
        let isOld =
            state.isUnstored || state.fetchedAt.map { abs(instant - $0) >= maximumAgeSeconds } ?? true
        guard let attempted = state.attemptedAt else { return isOld || state.unknownKeys.wantedAfter != nil }
        let pause = abs(instant - attempted)
        if isOld, pause >= cooldownSeconds { return true }
        // After a failed fetch, fetches because of unknown keys are less frequent.
        return state.unknownKeys.wantedAfter.map {
            pause >= (state.problem == nil ? $0 : UnknownKeyBudget.slowSeconds)
        } ?? false
    }

    private func store(_ json: String, at instant: Double) {
        let (stored, generation) = state.withLock { ($0.stored, $0.generation) }
        let isRecent = stored.map { abs(instant - $0.at) < Self.storedSeconds } ?? false
        if isRecent, stored?.generation == generation { return }
        let set = PublishedKeySet(json: json, fetchedMilliseconds: Milliseconds(seconds: instant).count)
        let isStored = shared?.write(set) ?? true
        state.withLock { state in
            state.isUnstored = !isStored
            if isStored { state.stored = (instant, generation) }
        }
    }

    func takeStored(at instant: Double) {
        guard let set = shared?.read() else { return }
        let time = Milliseconds(set.fetchedMilliseconds).seconds
        // A fetch time in the future was written with a wrong clock, so the set may be old.
        guard time > fetchedAt ?? 0, time < instant + SharedKeySet.tolerance,
            let keys = try? JWKSet(json: set.json).keys, !keys.isEmpty
        else { return }
        take(keys, fetchedAt: time)
    }

    private func readSharedIfDue(at instant: Double, run: (@escaping @Sendable () -> Void) -> Void) {
        let isDue = state.withLock { state in
            if let last = state.sharedAt, abs(instant - last) < Self.sharedSeconds { return false }
            state.sharedAt = instant
            return true
        }
        guard isDue else { return }
        run { [self] in takeStored(at: instant) }
    }

    private func take(_ keys: [PublicKey], fetchedAt: Double) {
        func texts(_ keys: [PublicKey]) -> [[UInt8]] { keys.map { Array($0.jwk.utf8) } }
        state.withLock { state in
            state.fetchedAt = fetchedAt
            if texts(keys) == texts(state.keys) { return }
            state.keys = keys
            state.generation += 1
            state.unknownKeys.setChanged()
        }
    }

    private func finish(_ fetched: [PublicKey]?, at instant: Double, problem: String?) {
        let isNew = state.withLock { state in
            state.isFetching = false
            defer { state.problem = problem }
            return state.problem != problem
        }
        if isNew { report(problem) }
        if let fetched, !fetched.isEmpty { take(fetched, fetchedAt: instant) }
    }

    static let fetchOverHTTPS: KeySourceFetch = { source throws(OutboundRequest.Failure) in
        let answer = try OutboundRequest(
            url: source.url, headers: [("Accept", "application/jwk-set+json, application/json")],
            allowsPrivateAddresses: source.allowsPrivateAddresses, timeoutMilliseconds: 5_000,
            maximumBytes: maximumBytes
        ).perform()
        guard answer.status == 200 else {
            throw OutboundRequest.Failure(reason: "it answered \(answer.status)")
        }
        return answer.body
    }
}
