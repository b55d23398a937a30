/// The columns of `event_consumer` with the progress of webhooks, streams and event files.
package enum ProgressColumns {
    package static let script =
        (["message_id", "digest", "error", "reason"].map { "\($0) TEXT" }
        + ["through_seq", "revision", "failing_since_ms", "delivered_ms", "failed_ms"].map { "\($0) INTEGER" }
        + ["epoch", "receiver_seq", "failures", "next_ms"].map { "\($0) INTEGER NOT NULL DEFAULT 0" })
        .map { "ALTER TABLE event_consumer ADD COLUMN \($0);" }.joined(separator: "\n")
}

/// The column for a gap (events deleted unread) before a partition's position. Earlier versions stored a gap only for
/// the whole consumer.
package enum PartitionGaps {
    package static let script = """
        ALTER TABLE event_consumer_position ADD COLUMN is_after_gap INTEGER NOT NULL DEFAULT 0;
        UPDATE event_consumer_position SET is_after_gap = 1
        WHERE EXISTS (
            SELECT 1 FROM event_consumer AS own WHERE missed_ms IS NOT NULL
            AND own.app_id = event_consumer_position.app_id AND own.kind = event_consumer_position.kind
            AND own.name = event_consumer_position.name
            AND event_consumer_position.seq >= coalesce(
                (SELECT seq FROM event_floor WHERE event_floor.app_id = own.app_id), 0));
        """
}
