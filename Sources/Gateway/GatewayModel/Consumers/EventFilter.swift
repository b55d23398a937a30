internal import CountersignCore

/// Selects the events of a consumer. Nil members match every event.
package struct EventFilter: Sendable, Equatable {
    package var verdict: VerdictFilter?
    /// At most 64 bytes.
    package var type: String?
    /// At most 512 bytes.
    package var name: String?
    /// At most 512 bytes. Does not match events that were assigned to the user after they were stored.
    package var userID: String?
    package var claim: ClaimFilter?

    package init(
        verdict: VerdictFilter? = nil, type: String? = nil, name: String? = nil, userID: String? = nil,
        claim: ClaimFilter? = nil
    ) {
        self.verdict = verdict
        self.type = type
        self.name = name
        self.userID = userID
        self.claim = claim
    }
}

/// A partition of an app's events. Events that were stored with the same user are in one partition, in order.
package struct EventPartition: Sendable, Equatable {
    package let index: Int
    package let count: Int

    package init(_ index: Int, of count: Int) {
        self.index = index
        self.count = count
    }

    package static let whole = EventPartition(0, of: 1)

    /// The partition of a user or, for events without a user, of a device: FNV-1a, 64 bits, modulo the number
    /// of partitions. The function must never change, because stored positions depend on it.
    package static func index(of id: String, count: Int) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in id.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(hash % UInt64(count))
    }

    /// Whether an event with these columns is in this partition. An event that was assigned to a user later
    /// stays in the partition of its device. Otherwise a reader could skip the event or read it twice.
    package func has(
        sender: @autoclosure () -> String?, userID: @autoclosure () -> String?,
        anonymousID: @autoclosure () -> String?
    ) -> Bool {
        guard count > 1 else { return true }
        let id = (sender() == EventSender.anonymousContent ? nil : userID()) ?? anonymousID() ?? ""
        return Self.index(of: id, count: count) == index
    }
}
