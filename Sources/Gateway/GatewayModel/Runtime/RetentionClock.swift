/// The time by which old data is deleted.
///
/// After a sudden forward jump of the clock, this time continues from its previous value for an hour, so that a
/// temporarily wrong clock does not delete new data.
package struct RetentionClock {
    /// The minimum size of a jump and the time for which it is ignored, in milliseconds.
    private static let hour: Int64 = 3_600_000

    private var last: (time: Int64, uptime: Int64)?
    /// The uptime at which a jump was first seen.
    private var doubted: Int64?

    /// With nil, the first time passed to ``time(_:at:)`` is trusted.
    package init(_ milliseconds: Int64? = nil) {
        last = milliseconds.map { ($0, Uptime.milliseconds) }
    }

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
