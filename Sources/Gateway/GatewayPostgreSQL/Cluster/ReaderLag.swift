/// Measures how long an open transaction delays the readers of events, which stop before the oldest transaction.
///
/// The age follows from samples of the next transaction id. Unlike `pg_stat_activity`, they need no permission.
struct ReaderLag {
    private static let mostLooks = 3_600

    private var looks: [(milliseconds: Int64, next: Int64)] = []

    /// Returns the minimum age of the oldest transaction in milliseconds; 0 if it began after the previous sample.
    mutating func note(oldest: Int64, next: Int64, at milliseconds: Int64) -> Int64 {
        // The oldest transaction began before the first sample in which its id was already assigned.
        let began = looks.first { $0.next > oldest }?.milliseconds
        if looks.count >= Self.mostLooks { looks.removeFirst() }
        looks.removeAll { $0.next <= oldest }
        looks.append((milliseconds, next))
        return began.map { milliseconds - $0 } ?? 0
    }
}
