/// The back-off between attempts to publish.
enum SinkPause {
    private static let firstMilliseconds: Int64 = 500
    private static let longestMilliseconds: Int64 = 30_000

    /// A pause in milliseconds with equal jitter: at least half of the limit. The limit doubles with each
    /// failure, up to 30 seconds.
    static func milliseconds(failures: Int, random: (ClosedRange<Int64>) -> Int64) -> Int64 {
        let limit = min(firstMilliseconds << Int64(min(max(failures, 1) - 1, 10)), longestMilliseconds)
        return random(limit / 2...limit)
    }
}
