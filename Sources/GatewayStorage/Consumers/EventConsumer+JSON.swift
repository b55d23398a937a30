package import CountersignCore

extension EventConsumer {
    /// The consumer as every API shows it.
    package func json(_ positions: EventPositions) -> JSONValue {
        let parts: [JSONValue] = partitions.enumerated().map { index, partition in
            let members: [String: JSONValue] = [
                "partition": .integer(Int64(index)),
                "position": .string(positions.text(after: partition.committed, in: id.appID)),
                "leased_until_ms": Self.number(partition.leasedUntilMilliseconds),
            ]
            return .object(members)
        }
        let filter = settings.filter
        let filtered: [String: JSONValue] = [
            "verdict": Self.text(filter.verdict?.word), "type": Self.text(filter.type),
            "name": Self.text(filter.name), "user": Self.text(filter.userID),
        ]
        let members: [String: JSONValue] = [
            "name": .string(id.name), "created_ms": .integer(createdMilliseconds),
            "filter": .object(filtered), "partitions": .array(parts),
            "holds_retention": .bool(settings.holdDays != nil),
            "hold_days": Self.number(settings.holdDays.map { Int64($0) }), "lag_events": .integer(Int64(lag)),
            "oldest_unread_ms": Self.number(oldestUnreadMilliseconds), "events_missed": .bool(hasMissed),
        ]
        return .object(members)
    }

    private static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
    private static func number(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }
}
