/// How long readers of events have been waiting for a transaction that is open.
///
/// A reader stops before the oldest open transaction. How old that is follows from what the next transaction's number was at
/// each look, without the rights that it takes to look at other people's sessions.
struct ReaderLag {
    private static let mostLooks = 3_600

    private var looks: [(milliseconds: Int64, next: Int64)] = []

    /// Notes the oldest open transaction and the next one as of now. Returns how many milliseconds ago the oldest began, at
    /// least; 0 when none that was open at the last look still is.
    mutating func note(oldest: Int64, next: Int64, at milliseconds: Int64) -> Int64 {
        // The oldest began after the last look at which it was still to come.
        let began = looks.first { $0.next > oldest }?.milliseconds
        if looks.count >= Self.mostLooks { looks.removeFirst() }
        looks.removeAll { $0.next <= oldest }
        looks.append((milliseconds, next))
        return began.map { milliseconds - $0 } ?? 0
    }
}
