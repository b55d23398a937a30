internal import GatewayModel

/// Which of the clients that an app hears from are counted by their names: those that send most, in bounded memory.
///
/// Clients choose their names themselves, so there may be any number. The counts are those of Misra and Gries: whatever
/// makes up more than one in ``capacity`` of the requests is among them. Who is named is decided again each minute and
/// stays so for it: no more than ``most`` names a minute reach the disk.
struct FrequentClients {
    static let most = 300
    private static let capacity = 1_200
    private static let halvingMilliseconds: Int64 = 3_600_000

    private var counts: [ClientInfo: Int] = [:]
    private var named: Set<ClientInfo> = []
    private var minute: Int64 = 0
    private var halvedAt: Int64 = 0

    /// Counts a request. Returns whether it is to be counted by its name.
    mutating func note(_ client: ClientInfo, minute: Int64) -> Bool {
        // No request ends an hour later than others that began after it: the clock was ahead.
        if minute > self.minute || minute < self.minute - Self.halvingMilliseconds { elect(at: minute) }
        count(client)
        if named.contains(client) { return true }
        guard named.count < Self.most else { return false }
        named.insert(client)
        return true
    }

    private mutating func count(_ client: ClientInfo) {
        if let known = counts.index(forKey: client) {
            counts.values[known] += 1
        } else if counts.count < Self.capacity {
            counts[client] = 1
        } else {
            // Takes no more than was added before: on average one step a request.
            counts = counts.compactMapValues { $0 > 1 ? $0 - 1 : nil }
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
        // What was common long ago makes room for what is now.
        halvedAt = minute
        counts = counts.compactMapValues { $0 > 1 ? $0 / 2 : nil }
    }
}
