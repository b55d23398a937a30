package import CountersignCore
package import GatewayModel

extension EventConsumer {
    /// The consumer as JSON, for all APIs.
    package func json(_ positions: EventPositions) -> JSONValue { Self.shape.json((self, positions)) }

    package static let shape = AnswerShape<(consumer: EventConsumer, positions: EventPositions)>(
        .init("name") { $0.consumer.id.name }, .time("created_ms") { $0.consumer.createdMilliseconds },
        .init("holds_retention") { $0.consumer.settings.holdDays != nil },
        .init("hold_days") { $0.consumer.settings.holdDays }, .init("lag_events") { $0.consumer.lag },
        .time("oldest_unread_ms") { $0.consumer.oldestUnreadMilliseconds },
        .init("events_missed") { $0.consumer.gap.isOpen },
        .object("filter", filter) { $0.consumer.settings.filter },
        .list("partitions", partition) { shown in
            shown.consumer.partitions.enumerated().map { index, partition in
                (
                    index, shown.positions.text(after: partition.committed, in: shown.consumer.id.appID),
                    partition.leasedUntilMilliseconds
                )
            }
        })

    private static let filter = AnswerShape<EventFilter>(
        .init("verdict", .nullable(.choice(VerdictFilter.words))) { $0.verdict?.word },
        .init("type", \.type), .init("name", \.name), .init("user", \.userID),
        .init("claim", .nullable(.string)) { $0.claim?.text })

    private static let partition = AnswerShape<(index: Int, position: String, leasedUntil: Int64?)>(
        .init("partition") { $0.index }, .init("position") { $0.position },
        .time("leased_until_ms") { $0.leasedUntil })
}
