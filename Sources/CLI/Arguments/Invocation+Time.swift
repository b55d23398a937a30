internal import CountersignCore
internal import Foundation

extension Invocation {
    /// Milliseconds since 1970, from a date and time or an age such as `30s`, `10m`, `2h`, `7d`.
    func time(of flag: Flag) throws(CommandError) -> Int64? {
        guard let text = try value(of: flag) else { return nil }
        if let milliseconds = RFC3339.milliseconds(text) { return milliseconds }
        if let distance = Self.distance(text) { return Milliseconds(Date()).count - distance }
        throw CommandError(
            .usage, "--\(flag.name) takes a time such as 2026-11-21T08:30:00Z, or 10m, 2h, 7d, not '\(text)'")
    }

    /// Milliseconds since 1970, from a date and time or a delay such as `30s` or `7d`.
    func futureTime(of flag: Flag) throws(CommandError) -> Int64? {
        guard let text = try value(of: flag) else { return nil }
        let now = Milliseconds(Date()).count
        if let distance = Self.distance(text), distance > 0 { return now + distance }
        guard let milliseconds = RFC3339.milliseconds(text) else {
            throw CommandError(
                .usage,
                "--\(flag.name) takes a time such as 2030-01-31T08:00:00Z, or 10m, 2h, 7d from now, not '\(text)'"
            )
        }
        guard milliseconds > now else {
            throw CommandError(.usage, "--\(flag.name) is in the past: \(text)")
        }
        return milliseconds
    }

    /// The milliseconds of a duration with a unit; nil for other text, and from 10^9 s (31 years) on.
    private static func distance(_ text: String) -> Int64? {
        guard let seconds = Quantity.duration(text, in: .seconds), text.last?.isLetter == true,
            seconds < 1_000_000_000
        else { return nil }
        return Milliseconds(seconds: seconds).count
    }
}
