internal import CountersignCore

/// The verbosity of the log. Each level includes the levels before it.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    /// Nothing.
    case off
    /// Responses of 500 and above, and failures of the gateway itself.
    case error
    /// Rejected requests, and invalid tokens.
    case warning
    /// Every request except health checks and metrics.
    case info
    /// Every request.
    case debug

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func < (first: LogLevel, second: LogLevel) -> Bool { first.rank < second.rank }

    private var rank: Int {
        switch self {
        case .off: 0
        case .error: 1
        case .warning: 2
        case .info: 3
        case .debug: 4
        }
    }
}
