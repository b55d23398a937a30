internal import CountersignCore
internal import GatewayModel

/// File names such as `2026-11-22T19-000001.ndjson.zst`: the hour and a number.
enum HourlyFileName {
    /// The name of the file after `last`. Names ascend in the order of events, so an event that was stored very late
    /// is in a file of a later hour.
    static func next(of hour: Int64, after last: String?) -> String {
        let digits = 13
        let own = String(RFC3339.text(milliseconds: hour).prefix(digits))
        let other = last.map { String($0.prefix(digits)) } ?? own
        let prefix = own < other ? other : own
        let before = last.flatMap { last in
            last.hasPrefix(prefix) ? Int(last.dropFirst(digits + 1).prefix { $0.isNumber }) : nil
        }
        let number = String((before ?? 0) + 1)
        return prefix + "-" + String(repeating: "0", count: max(0, 6 - number.count)) + number
            + EventFileManifest.suffix
    }
}
