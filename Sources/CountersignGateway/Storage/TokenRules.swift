internal import CountersignCore

/// How the gateway's token service treats an app's sessions.
public struct TokenRules: Sendable, Equatable {
    /// What ``accessSeconds`` may be.
    public static let accessRange = 1...86_400
    /// What ``refreshSeconds`` may be.
    public static let refreshRange = 1...31_536_000
    /// What ``reuseSeconds`` may be.
    public static let reuseRange = 0...300

    /// Whether devices may register themselves at `/api/register`, where nobody vouches for them.
    public var allowsRegistration = false
    /// How long an access token lives, in seconds.
    public var accessSeconds = 3_600
    /// How long a session lives without being used, in seconds.
    public var refreshSeconds = 30 * 86_400
    /// How long after its exchange an older refresh token still gets the active one, in seconds.
    public var reuseSeconds = 30

    /// No registration; an hour, thirty days, thirty seconds.
    public init() {}
}

extension TokenRules {
    /// The rules as the audit log and the admin API have them.
    var json: JSONValue {
        [
            "registration": .string(allowsRegistration ? "open" : "closed"),
            "access_seconds": .integer(Int64(accessSeconds)),
            "refresh_seconds": .integer(Int64(refreshSeconds)),
            "reuse_seconds": .integer(Int64(reuseSeconds)),
        ]
    }
}
