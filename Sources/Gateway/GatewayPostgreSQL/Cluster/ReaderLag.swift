/// Measures how long an open transaction delays the readers of events, which stop before the oldest transaction.
///
/// The age follows from samples of the next transaction id. Unlike `pg_stat_activity`, they need no permission.
struct ReaderLag {
    private static let mostSamples = 3_600

    private var samples: [(milliseconds: Int64, next: Int64)] = []

    /// Returns the minimum age of the oldest transaction in milliseconds; 0 if it began after the previous sample.
    mutating func note(oldest: Int64, next: Int64, at milliseconds: Int64) -> Int64 {
        // The oldest transaction began before the first sample in which its id was already assigned.
        let began = samples.first { $0.next > oldest }?.milliseconds
        if samples.count >= Self.mostSamples { samples.removeFirst() }
        samples.removeAll { $0.next <= oldest }
        samples.append((milliseconds, next))
        return began.map { milliseconds - $0 } ?? 0
    }
}
