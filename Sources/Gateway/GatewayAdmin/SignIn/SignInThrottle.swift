internal import CountersignCore
internal import CountersignCrypto
internal import GatewayModel
internal import GatewayStorage

/// Limits sign-in attempts. After too many failures, attempts are blocked for a minute, then for twice as
/// long each time, up to an hour. The limits are 5 failures for a name from one address, 20 for an address,
/// and 50 for a name.
///
/// An address is an IPv4 address or an IPv6 /64. The limit of 50 does not apply to the last eight addresses from which
/// the user has signed in, so that an attacker cannot lock the user out.
final class SignInThrottle: Sendable {
    /// Used instead of a name for one-time links. No user can have this name.
    static let oneTimeLink = "\u{0}one-time link"

    fileprivate struct Key: Hashable {
        /// Nil counts all names.
        let name: String?
        /// Nil counts all addresses.
        let network: String?
    }

    fileprivate static let hour: Int64 = 3_600_000

    fileprivate struct Attempts {
        var failures = 0
        var blockedUntil: Int64 = 0
        var lastMilliseconds: Int64 = 0

        /// The end of the block in milliseconds since 1970; nil if attempts are allowed.
        func block(at milliseconds: Int64) -> Int64? {
            DueTime.hasCome(blockedUntil, at: milliseconds, within: SignInThrottle.hour) ? nil : blockedUntil
        }

        func isOver(at milliseconds: Int64) -> Bool {
            abs(milliseconds - lastMilliseconds) > SignInThrottle.hour
        }
    }

    private struct State {
        var attempts: [Key: Attempts] = [:]
        /// The addresses from which users have signed in, latest last.
        var networks: BytewiseDictionary<[String]> = [:]
    }

    private static let capacity = 10_000
    private static let networksOfAName = 8
    private let state = Lock(State())
    private let cluster: (any Cluster)?

    /// With a cluster, all gateways share the counts.
    init(cluster: (any Cluster)? = nil) {
        self.cluster = cluster
    }

    /// Counts an attempt as failed until ``succeed(name:address:)`` or ``takeBack(name:address:)`` is called, so that
    /// concurrent attempts also reach the limit. Returns the seconds to wait if the attempt is blocked.
    func begin(name: String, address: String, at milliseconds: Int64) -> Int? {
        // Without access to the shared counts, no attempt is allowed.
        change(name, address, otherwise: 1) { state in
            let limits = Self.limits(name, address, state)
            let until = limits.compactMap { state.attempts[$0.key]?.block(at: milliseconds) }.max()
            if let until { return Int((until - milliseconds + 999) / 1000) }
            for (key, limit) in limits {
                if state.attempts[key] == nil { Self.makeRoom(in: &state.attempts, at: milliseconds) }
                var entry = state.attempts[key] ?? Attempts()
                if entry.isOver(at: milliseconds) { entry = Attempts() }
                entry.failures += 1
                entry.lastMilliseconds = milliseconds
                if entry.failures >= limit {
                    let minutes = min(60, 1 << min(6, entry.failures - limit))
                    entry.blockedUntil = milliseconds + Int64(minutes) * 60_000
                }
                state.attempts[key] = entry
            }
            return nil
        }
    }

    func isBlocked(name: String, address: String, at milliseconds: Int64) -> Bool {
        change(name, address, otherwise: true) { state in
            Self.limits(name, address, state).contains { key, _ in
                state.attempts[key]?.block(at: milliseconds) != nil
            }
        }
    }

    /// Uncounts an attempt that neither succeeded nor failed.
    func takeBack(name: String, address: String) {
        change(name, address, otherwise: ()) { Self.uncount(name, address, &$0, isSuccess: false) }
    }

    func succeed(name: String, address: String) {
        change(name, address, otherwise: ()) { state in
            Self.uncount(name, address, &state, isSuccess: true)
            guard name != Self.oneTimeLink else { return }
            let network = Self.network(address)
            let name = Self.truncated(name)
            let others = (state.networks[name] ?? []).filter { $0 != network }
            state.networks[name] = others.suffix(Self.networksOfAName - 1) + [network]
        }
    }

    /// A success also resets the failures for the name from the address.
    private static func uncount(_ name: String, _ address: String, _ state: inout State, isSuccess: Bool) {
        for (key, _) in limits(name, address, state) {
            guard var entry = state.attempts[key] else { continue }
            let isReset = isSuccess && key.name != nil && key.network != nil
            entry.failures = isReset ? 0 : entry.failures - 1
            // Ends a block, which includes this attempt: attempts during a block are rejected and not counted.
            entry.blockedUntil = 0
            state.attempts[key] = entry.failures > 0 ? entry : nil
        }
    }

    private static func limits(
        _ name: String, _ address: String, _ state: State
    ) -> [(key: Key, limit: Int)] {
        let name = truncated(name)
        let network = Self.network(address)
        let own = [(Key(name: name, network: network), 5), (Key(name: nil, network: network), 20)]
        if name == oneTimeLink || state.networks[name]?.contains(network) == true { return own }
        return own + [(Key(name: name, network: nil), 50)]
    }

    /// Truncates a name from a client to bound memory. The longest user name with a time of creation fits.
    private static func truncated(_ name: String) -> String {
        String(decoding: name.utf8.prefix(96), as: UTF8.self)
    }

    private static func network(_ address: String) -> String {
        NetworkAddress(address).map { "\($0.limitedUnit)" } ?? address
    }

    /// Removes expired entries. If too many remain, removes a quarter. Entries without a block and with the fewest
    /// failures are removed first, so that invented names do not displace blocks.
    private static func makeRoom(in attempts: inout [Key: Attempts], at milliseconds: Int64) {
        guard attempts.count >= capacity else { return }
        attempts = attempts.filter { !$0.value.isOver(at: milliseconds) }
        guard attempts.count >= capacity else { return }
        let order = attempts.sorted {
            ($0.value.blockedUntil, $0.value.failures, $0.value.lastMilliseconds)
                < ($1.value.blockedUntil, $1.value.failures, $1.value.lastMilliseconds)
        }
        for (key, _) in order.prefix(capacity / 4) { attempts[key] = nil }
    }

    // MARK: Cluster

    /// Changes the state of a name and an address. Returns `otherwise` if the shared state cannot be read.
    private func change<Value>(
        _ name: String, _ address: String, otherwise: Value, _ body: (inout State) -> Value
    ) -> Value {
        guard let cluster else { return state.withLock(body) }
        let (name, network) = (Self.truncated(name), Self.network(address))
        let keys = [
            Key(name: name, network: network), Key(name: nil, network: network),
            Key(name: name, network: nil),
        ]
        let ownNetworks = ClusterNote.Name(.signInPlaces, SHA256.digest(name).hexadecimal)
        do throws(GatewayError) {
            return try cluster.change(keys.map(\.noteName) + [ownNetworks]) { notes in
                var state = State()
                for key in keys { state.attempts[key] = notes[key.noteName].flatMap(Attempts.init(json:)) }
                state.networks[name] = notes[ownNetworks].flatMap { [String](jsonValue: $0) }
                let value = body(&state)
                for key in keys { notes[key.noteName] = state.attempts[key]?.json }
                notes[ownNetworks] = state.networks[name]?.jsonValue
                return value
            }
        } catch {
            return otherwise
        }
    }
}

extension SignInThrottle.Key {
    fileprivate var noteName: ClusterNote.Name {
        // A digest, because clients choose the name.
        let digest = SHA256.digest("\(network ?? "")\n\(name.map { "=" + $0 } ?? "")")
        return ClusterNote.Name(.signInAttempts, digest.hexadecimal)
    }
}

extension SignInThrottle.Attempts {
    fileprivate init?(json: JSONValue) {
        guard case .array(let numbers) = json, numbers.count == 3, let failures = Int(jsonValue: numbers[0]),
            let until = Int64(jsonValue: numbers[1]), let last = Int64(jsonValue: numbers[2])
        else { return nil }
        self.init(failures: failures, blockedUntil: until, lastMilliseconds: last)
    }

    fileprivate var json: JSONValue {
        .array([.integer(Int64(failures)), .integer(blockedUntil), .integer(lastMilliseconds)])
    }
}
