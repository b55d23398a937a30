internal import CountersignCore
package import CountersignJOSE
internal import GatewayHTTP
package import GatewayModel

/// Fetches the document of a key source; called on its own thread.
typealias KeySourceFetch = @Sendable (KeySource) throws(OutboundRequest.Failure) -> [UInt8]

/// The keys that somebody else publishes for an app: fetched, kept, and fetched again.
///
/// One fetch at a time. Gateways that share a database share the last good set, so that they accept the same tokens. A set is fetched again after ten minutes, and earlier when a token came whose key is not known,
/// at most once in 30 seconds. What cannot be fetched leaves the last good set as it is.
package final class PublishedKeys: Sendable {
    static let maximumAgeSeconds = 600.0
    static let cooldownSeconds = 30.0
    /// How often it is asked what other gateways have fetched.
    static let sharedSeconds = 5.0

    package let source: KeySource
    private let state = Lock(State())

    private struct State {
        var keys: [PublicKey] = []
        var fetchedAt: Double?
        var attemptedAt: Double?
        var sharedAt: Double?
        var isFetching = false
        var isWanted = false
        var generation = 0
        var problem: String?
    }

    private let shared: SharedKeySet?

    init(source: KeySource, shared: SharedKeySet? = nil) {
        self.source = source
        self.shared = shared
    }

    /// The last good set; empty before the first.
    package var keys: [PublicKey] { state.withLock { $0.keys } }

    /// Counts the sets that differed from the one before.
    var generation: Int { state.withLock { $0.generation } }

    /// Why the last fetch failed; nil when it did not.
    package var problem: String? { state.withLock { $0.problem } }

    /// Seconds since 1970 of the last fetch that gave a good set; nil before the first.
    package var fetchedAt: Double? { state.withLock { $0.fetchedAt } }

    /// A token came whose key is not known.
    func noteUnknownKey() {
        state.withLock { $0.isWanted = true }
    }

    /// Fetches, when it is time to, and returns at once; `run` runs work on another thread.
    func refreshIfDue(
        at instant: Double, fetch: @escaping KeySourceFetch,
        run: (@escaping @Sendable () -> Void) -> Void
    ) {
        if shared != nil { lookIfDue(at: instant, run: run) }
        let isDue = state.withLock { state -> Bool in
            guard !state.isFetching else { return false }
            if let attempted = state.attemptedAt, abs(instant - attempted) < Self.cooldownSeconds {
                return false
            }
            let isOld = state.fetchedAt.map { abs(instant - $0) >= Self.maximumAgeSeconds } ?? true
            guard isOld || state.isWanted else { return false }
            state.isFetching = true
            state.isWanted = false
            state.attemptedAt = instant
            return true
        }
        guard isDue else { return }
        run { [self] in
            do {
                let json = String(decoding: try fetch(source), as: UTF8.self)
                let fetched = try JWKSet(json: json).keys
                if !fetched.isEmpty { shared?.write(SharedKeySet.Copy(json: json, fetchedAt: instant)) }
                finish(fetched, at: instant, problem: fetched.isEmpty ? "the set has no usable key" : nil)
            } catch {
                let reason =
                    (error as? OutboundRequest.Failure)?.reason ?? (error as? JOSEError)?.reason ?? "\(error)"
                finish(nil, at: instant, problem: reason)
            }
        }
    }

    /// Takes over what another gateway has fetched since, on another thread.
    private func lookIfDue(at instant: Double, run: (@escaping @Sendable () -> Void) -> Void) {
        let isDue = state.withLock { state in
            if let last = state.sharedAt, abs(instant - last) < Self.sharedSeconds { return false }
            state.sharedAt = instant
            return true
        }
        guard isDue else { return }
        run { [self] in
            // One from the future was fetched by a clock that was ahead, and may be old.
            guard let copy = shared?.read(), copy.fetchedAt > fetchedAt ?? 0,
                copy.fetchedAt < instant + SharedKeySet.tolerance,
                let keys = try? JWKSet(json: copy.json).keys, !keys.isEmpty
            else { return }
            take(keys, fetchedAt: copy.fetchedAt)
        }
    }

    private func take(_ keys: [PublicKey], fetchedAt: Double) {
        state.withLock { state in
            state.fetchedAt = fetchedAt
            let isSame = keys.map(\.thumbprint) == state.keys.map(\.thumbprint)
            if isSame, keys.map(\.kid) == state.keys.map(\.kid) { return }
            state.keys = keys
            state.generation += 1
        }
    }

    private func finish(_ fetched: [PublicKey]?, at instant: Double, problem: String?) {
        state.withLock { state in
            state.isFetching = false
            state.problem = problem
        }
        if let fetched, !fetched.isEmpty { take(fetched, fetchedAt: instant) }
    }

    /// Asks the source over the network.
    static let fetchOverHTTPS: KeySourceFetch = { source throws(OutboundRequest.Failure) in
        let answer = try OutboundRequest(
            url: source.url, headers: [("Accept", "application/jwk-set+json, application/json")],
            allowsPrivateAddresses: source.allowsPrivateAddresses, timeoutMilliseconds: 5_000,
            maximumBytes: 256 * 1024
        ).perform()
        guard answer.status == 200 else {
            throw OutboundRequest.Failure(reason: "it answered \(answer.status)")
        }
        return answer.body
    }
}
