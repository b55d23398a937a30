internal import CountersignCore
package import GatewayModel

/// Limits and errors of consumers, common to all storage engines.
package enum EventConsumerRules {
    package static let mostOfApp = 64

    /// Throws `invalid`.
    package static func check(
        _ id: EventConsumerID, _ settings: EventConsumerSettings
    ) throws(ConsumerFailure) {
        guard EventConsumerID.isName(id.name), GivenName.isUsable(id.name) else {
            throw ConsumerFailure(
                .invalid,
                "a consumer's name must be 1 to 64 of the characters A-Z a-z 0-9 . _ -, and \(GivenName.rule)"
            )
        }
        guard 1...EventConsumerSettings.mostPartitions ~= settings.partitions else {
            throw ConsumerFailure(.invalid, "partitions must be 1 to \(EventConsumerSettings.mostPartitions)")
        }
        guard settings.holdDays.map({ 1...EventConsumerSettings.longestHold ~= $0 }) ?? true else {
            throw ConsumerFailure(
                .invalid, "hold_days must be 1 to \(EventConsumerSettings.longestHold)")
        }
        try check(settings.filter)
    }

    /// Throws `invalid`.
    package static func check(_ filter: EventFilter) throws(ConsumerFailure) {
        for (text, most) in [(filter.type, 64), (filter.name, 512), (filter.userID, 512)] {
            guard let text else { continue }
            guard 1...most ~= text.utf8.count, !text.hasControlCharacter else {
                throw ConsumerFailure(
                    .invalid, "a filter must have 1 to \(most) bytes without control characters")
            }
        }
    }

    package static func notFound(_ id: EventConsumerID) -> ConsumerFailure {
        ConsumerFailure(.notFound, "the app has no consumer \(id.name); create it first")
    }

    package static func exists(_ id: EventConsumerID) -> ConsumerFailure {
        ConsumerFailure(
            .exists, "there is already a consumer \(id.name); delete it first, or choose another name")
    }

    package static let tooMany = ConsumerFailure(
        .tooMany, "an app may have at most \(mostOfApp) consumers; delete one that is not used")

    package static let leaseExpired = ConsumerFailure(
        .leaseExpired,
        "this lease has ended: it expired and another worker has its events, the consumer was moved, or the "
            + "gateway was restarted; poll again")

    package static let notInLease = ConsumerFailure(
        .notInLease, "this position is not in the lease; give the position of one of its events")
}
