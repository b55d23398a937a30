/// Measures how long readers of events wait for an open transaction.
///
/// Readers stop before the oldest open transaction. Its age follows from earlier samples of the next
/// transaction id. This requires no permission to see other sessions.
struct ReaderLag {
    private static let mostLooks = 3_600

    private var looks: [(milliseconds: Int64, next: Int64)] = []

    /// Records a sample of the oldest open transaction and the next transaction id. Returns the minimum age
    /// of the oldest in milliseconds; 0 when it began after the previous sample.
    mutating func note(oldest: Int64, next: Int64, at milliseconds: Int64) -> Int64 {
        // The oldest transaction began after the last sample in which its id was not yet assigned.
        let began = looks.first { $0.next > oldest }?.milliseconds
        if looks.count >= Self.mostLooks { looks.removeFirst() }
        looks.removeAll { $0.next <= oldest }
        looks.append((milliseconds, next))
        return began.map { milliseconds - $0 } ?? 0
    }
}
