internal import CountersignCore

/// How the gateway's token service treats an app's sessions.
public struct TokenRules: Sendable, Equatable {
    /// What ``accessSeconds`` may be.
    public static let accessRange = 1...86_400
    /// What ``refreshSeconds`` may be.
    public static let refreshRange = 1...31_536_000
    /// What ``reuseSeconds`` may be.
    public static let reuseRange = 0...60
    /// What ``absoluteSeconds`` may be: up to ten years.
    public static let absoluteRange = 1...315_360_000

    /// Whether devices may register themselves at `/api/register`, where nobody vouches for them.
    public var allowsRegistration = false
    /// How long an access token lives, in seconds.
    public var accessSeconds = 3_600
    /// How long a session lives without being used, in seconds.
    public var refreshSeconds = 30 * 86_400
    /// How long after its exchange a refresh token still gets the one that took its place, in seconds.
    public var reuseSeconds = 60
    /// How long a session lives however much it is used, in seconds.
    public var absoluteSeconds = 90 * 86_400

    /// No registration; an hour, thirty days, a minute, ninety days.
    public init() {}

    /// When a session's absolute lifetime ends, in the unit of `start`: milliseconds since 1970.
    func end(of start: Int64) -> Int64 { start + Int64(absoluteSeconds) * 1000 }

    /// When a session is over that is not used again, in milliseconds since 1970.
    func expiry(of start: Int64, usedAt now: Int64) -> Int64 {
        min(now + Int64(refreshSeconds) * 1000, end(of: start))
    }
}

extension TokenRules {
    /// The rules as the audit log and the admin API have them.
    var json: JSONValue {
        [
            "registration": .string(allowsRegistration ? "open" : "closed"),
            "access_seconds": .integer(Int64(accessSeconds)),
            "refresh_seconds": .integer(Int64(refreshSeconds)),
            "reuse_seconds": .integer(Int64(reuseSeconds)),
            "absolute_seconds": .integer(Int64(absoluteSeconds)),
        ]
    }
}
