internal import CountersignCore

/// What a file of its own is for in a data directory.
package enum DataKind: String, TextEnum, Sendable {
    case control, secrets, sessions, analytics, deliveries, sinks

    /// True when each transaction that changes it has it alone, and so counts the generation up.
    var isWrittenAlone: Bool { self == .control || self == .secrets }

    /// Where changes are told of (`LISTEN`).
    package var channel: String { "countersign_\(rawValue)" }

    /// The tables whose rows belong to apps, by their first words; those of control are all others.
    static func of(table: String) -> DataKind? {
        switch table {
        case "session": .sessions
        case _ where table.hasPrefix("verdict_"): .analytics
        case "users_hour", "failed_user_hour", "sample": .analytics
        // These have a store of their own for this engine.
        case "event", "message_id", "app_usage", "key_use", "retention_mark", "event_floor", "event_consumer",
            "event_consumer_position", "customer", "customer_identifier":
            nil
        default: .control
        }
    }
}
