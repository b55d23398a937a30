internal import CountersignCore

/// Which events of an app somebody follows in their order.
package struct EventFollowing: Sendable, Equatable {
    package var appID: String
    package var filter: EventFilter
    /// One of several parts that the events are split into.
    package var partition: EventPartition

    package init(appID: String, filter: EventFilter = EventFilter(), partition: EventPartition = .whole) {
        self.appID = appID
        self.filter = filter
        self.partition = partition
    }
}

/// Which events are passed on to a consumer. What is nil is not looked at.
package struct EventFilter: Sendable, Equatable {
    package var verdict: VerdictFilter?
    /// At most 64 bytes.
    package var type: String?
    /// At most 512 bytes.
    package var name: String?
    /// At most 512 bytes. An event that became the user's after it was stored is not among them.
    package var userID: String?

    package init(
        verdict: VerdictFilter? = nil, type: String? = nil, name: String? = nil, userID: String? = nil
    ) {
        self.verdict = verdict
        self.type = type
        self.name = name
        self.userID = userID
    }
}

/// One part of an app's events: all events of a user are in the same one, so their order holds whoever reads the others.
package struct EventPartition: Sendable, Equatable {
    package let index: Int
    /// How many there are.
    package let count: Int

    package init(_ index: Int, of count: Int) {
        self.index = index
        self.count = count
    }

    package static let whole = EventPartition(0, of: 1)

    /// The part that the events of a user are in or, without one, of a device: FNV-1a, 64 bits, modulo the number of
    /// parts. It must never change, for the positions of two parts are those of two sets of events.
    package static func index(of id: String, count: Int) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in id.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(hash % UInt64(count))
    }
}
