internal import GatewayModel

/// Selects the most frequent clients among requests of an app for counting by name.
///
/// Clients choose their names, so memory is bounded: the Misra-Gries algorithm finds every client with more
/// than one in ``capacity`` of the requests. At most ``most`` names a minute are stored.
struct FrequentClients {
    static let most = 150
    private static let capacity = 1_200
    private static let halvingMilliseconds: Int64 = 3_600_000

    private var counts: [ClientInfo: Int] = [:]
    private var named: Set<ClientInfo> = []
    private var minute: Int64 = 0
    private var halvedAt: Int64 = 0

    /// Counts a request. Returns whether to count it by the client's name.
    mutating func note(_ client: ClientInfo, minute: Int64) -> Bool {
        // A minute more than an hour back means that the clock was ahead, because no request takes an hour.
        if minute > self.minute || minute < self.minute - Self.halvingMilliseconds { elect(at: minute) }
        count(client, times: 1)
        if named.contains(client) { return true }
        guard named.count < Self.most else { return false }
        named.insert(client)
        return true
    }

    func names(_ client: ClientInfo) -> Bool { named.contains(client) }

    /// Counts requests of a client without selecting clients.
    mutating func count(_ client: ClientInfo, times: Int) {
        guard times > 0 else { return }
        if let known = counts.index(forKey: client) {
            counts.values[known] += times
        } else if counts.count < Self.capacity {
            counts[client] = times
        } else {
            // Decrements every count: amortized, one step for each request.
            let least = min(times, counts.values.min() ?? 0)
            counts = counts.compactMapValues { $0 > least ? $0 - least : nil }
            if times > least { counts[client] = times - least }
        }
    }

    private mutating func elect(at minute: Int64) {
        self.minute = minute
        if counts.count > Self.most {
            let order = counts.sorted { left, right in
                if left.value != right.value { return left.value > right.value }
                return named.contains(left.key) && !named.contains(right.key)
            }
            named = Set(order.prefix(Self.most).map(\.key))
        } else {
            named = Set(counts.keys)
        }
        guard abs(minute - halvedAt) >= Self.halvingMilliseconds else { return }
        // Halves the counts, so that formerly frequent clients make room for current ones.
        halvedAt = minute
        counts = counts.compactMapValues { $0 > 1 ? $0 / 2 : nil }
    }
}
