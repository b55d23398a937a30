/// The time by which old data is deleted. When the clock leaps ahead, this one goes on as before for an hour, so that a clock
/// that is wrong for a moment deletes nothing new.
package struct RetentionClock {
    /// The least that counts as a leap, and how long one is doubted, in milliseconds.
    private static let hour: Int64 = 3_600_000

    private var last: (time: Int64, uptime: Int64)?
    /// The uptime at which the leap that is doubted was seen.
    private var doubted: Int64?

    /// `milliseconds` since 1970 are what the clock says now. Nil when nobody knows: the first time is then not doubted.
    package init(_ milliseconds: Int64? = nil) {
        last = milliseconds.map { ($0, Uptime.milliseconds) }
    }

    /// The time to delete by, where the clock says `milliseconds` since 1970 and ``Uptime`` says `uptime`.
    package mutating func time(_ milliseconds: Int64, at uptime: Int64 = Uptime.milliseconds) -> Int64 {
        if let last, milliseconds > last.time + (uptime - last.uptime) + Self.hour {
            let since = doubted ?? uptime
            doubted = since
            if uptime - since < Self.hour { return last.time + (uptime - last.uptime) }
        }
        doubted = nil
        last = (milliseconds, uptime)
        return milliseconds
    }
}
