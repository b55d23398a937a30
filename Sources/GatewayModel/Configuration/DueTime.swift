/// A time of day at which something is due. The clock may be set back while it waits. All are milliseconds.
package enum DueTime {
    /// A clock that is put right by less changes nothing.
    private static let tolerance: Int64 = 60_000

    /// `longest` is how far ahead it was noted at most: one that is further ahead was noted while the clock was, and has come.
    package static func hasCome(_ due: Int64, at now: Int64, within longest: Int64) -> Bool {
        due <= now || due > last(at: now, within: longest)
    }

    /// The last that can be waited for.
    package static func last(at now: Int64, within longest: Int64) -> Int64 { now + longest + tolerance }
}
