internal import CountersignCore

/// The kinds of data that have separate files in a data directory.
package enum DataKind: String, TextEnum, Sendable {
    case control, secrets, tokenFamilies = "sessions", analytics, deliveries, streams = "sinks"

    /// Whether each writing transaction is exclusive, and increments the generation.
    var isWrittenAlone: Bool { self == .control || self == .secrets }

    package var channel: String { "countersign_\(rawValue)" }

    /// The kind of a table with rows of apps; nil for tables of events, consumers and customers.
    static func of(table: String) -> DataKind? {
        switch table {
        case "session": .tokenFamilies
        case _ where table.hasPrefix("verdict_"): .analytics
        case "users_hour", "failed_user_hour", "sample": .analytics
        // ``EventErasure`` deletes the rows of these tables.
        case "event", "message_id", "app_usage", "key_use", "retention_mark", "event_floor", "event_consumer",
            "event_consumer_position", "customer", "customer_identifier":
            nil
        default: .control
        }
    }
}
