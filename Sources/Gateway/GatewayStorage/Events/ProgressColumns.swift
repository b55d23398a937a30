/// The columns of `event_consumer` with the progress of webhooks, streams and event files.
package enum ProgressColumns {
    /// The type of numbers is the engine's.
    package static func script(integer: String) -> String {
        let texts = ["message_id", "digest", "error", "reason"]
        let numbers = [
            "through_seq", "revision", "failing_since_ms", "delivered_ms", "failed_ms",
        ]
        let counts = ["epoch", "receiver_seq", "failures", "next_ms"]
        return
            (texts.map { "\($0) TEXT" } + numbers.map { "\($0) \(integer)" }
            + counts.map { "\($0) \(integer) NOT NULL DEFAULT 0" })
            .map { "ALTER TABLE event_consumer ADD COLUMN \($0);" }.joined(separator: "\n")
    }
}
