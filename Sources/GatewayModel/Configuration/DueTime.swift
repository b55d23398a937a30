/// Whether something that was scheduled for a time of day is due, even if the clock has been set back since.
package enum DueTime {
    /// So much further ahead than possible, in milliseconds, something may be because of a small correction of the clock,
    /// without counting as due.
    private static let tolerance: Int64 = 60_000

    /// `due` and `now` are milliseconds since 1970; `longest`, in milliseconds, is the furthest ahead of `now` that something
    /// is ever scheduled. If `due` is further ahead than that by more than a minute, it was scheduled while the clock was
    /// ahead, and counts as due.
    package static func hasCome(_ due: Int64, at now: Int64, within longest: Int64) -> Bool {
        due <= now || due > last(at: now, within: longest)
    }

    /// The latest time that something can be waiting for, in milliseconds since 1970: a minute after `longest` from now.
    package static func last(at now: Int64, within longest: Int64) -> Int64 { now + longest + tolerance }
}
