/// Whether something that was scheduled for a time of day is due, even if the clock has been set back since. All values are
/// milliseconds.
package enum DueTime {
    /// Small corrections of the clock must not make anything due early.
    private static let tolerance: Int64 = 60_000

    /// `longest` is the furthest ahead that it can have been scheduled. If `due` is further ahead than that, it was scheduled
    /// while the clock was ahead, and counts as due.
    package static func hasCome(_ due: Int64, at now: Int64, within longest: Int64) -> Bool {
        due <= now || due > last(at: now, within: longest)
    }

    /// The latest time that something can be waiting for.
    package static func last(at now: Int64, within longest: Int64) -> Int64 { now + longest + tolerance }
}
