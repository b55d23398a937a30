internal import CountersignSQLite

/// The times of receipt for ranges of events, so that a search by time skips ranges without matches. Ranges
/// are independent of each other, because the clock may have been set back.
struct EventTimes {
    static let schema = """
        CREATE TABLE event_time (
            first_seq INTEGER PRIMARY KEY,
            last_seq INTEGER NOT NULL,
            first_ms INTEGER NOT NULL,
            last_ms INTEGER NOT NULL
        ) STRICT;
        """

    private let size: Int64
    /// The incomplete range after the last complete one.
    private var incomplete: (sequences: ClosedRange<Int64>, milliseconds: ClosedRange<Int64>)?

    init(size: Int) {
        self.size = Int64(size)
    }

    /// Adds events of a commit, within its transaction.
    mutating func add(
        _ sequences: ClosedRange<Int64>, receivedMilliseconds milliseconds: Int64,
        _ connection: SQLiteConnection
    ) throws {
        let before = incomplete ?? (sequences, milliseconds...milliseconds)
        let sequences = before.sequences.lowerBound...sequences.upperBound
        let (first, last) = (before.milliseconds.lowerBound, before.milliseconds.upperBound)
        let times = min(first, milliseconds)...max(last, milliseconds)
        incomplete = (sequences, times)
        guard sequences.upperBound - sequences.lowerBound + 1 >= size else { return }
        incomplete = nil
        try connection.run(
            "INSERT OR REPLACE INTO event_time VALUES (?1, ?2, ?3, ?4)", .integer(sequences.lowerBound),
            .integer(sequences.upperBound), .integer(times.lowerBound), .integer(times.upperBound))
    }

    static func remove(before sequence: Int64, _ connection: SQLiteConnection) throws {
        try connection.run(
            "DELETE FROM event_time WHERE first_seq < ?1 AND last_seq < ?1", .integer(sequence))
    }

    /// The ranges without events received from `from` and before `to`, oldest first. Adjacent ranges are joined.
    static func without(
        from: Int64?, to: Int64?, _ connection: SQLiteConnection
    ) throws -> [ClosedRange<Int64>] {
        guard from != nil || to != nil else { return [] }
        var found: [ClosedRange<Int64>] = []
        let ranges = try connection.all(
            "SELECT first_seq, last_seq FROM event_time WHERE last_ms < ?1 OR first_ms >= ?2 ORDER BY first_seq",
            .integer(from ?? .min), .integer(to ?? .max)
        ) { $0.int64(0)...$0.int64(1) }
        for range in ranges {
            if let last = found.last, last.upperBound + 1 == range.lowerBound {
                found[found.count - 1] = last.lowerBound...range.upperBound
            } else {
                found.append(range)
            }
        }
        return found
    }
}
