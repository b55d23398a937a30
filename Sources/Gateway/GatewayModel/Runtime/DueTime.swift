/// Whether a scheduled time of day has come, even if the clock has been set back since.
package enum DueTime {
    /// Tolerance for small corrections of the clock, in milliseconds.
    private static let tolerance: Int64 = 60_000

    /// Times are milliseconds since 1970. `longest` is the maximum delay that is ever scheduled. A time more than a
    /// minute after `now + longest` was scheduled while the clock was ahead, and counts as come.
    package static func hasCome(_ due: Int64, at now: Int64, within longest: Int64) -> Bool {
        due <= now || due > last(at: now, within: longest)
    }

    package static func last(at now: Int64, within longest: Int64) -> Int64 { now + longest + tolerance }
}
