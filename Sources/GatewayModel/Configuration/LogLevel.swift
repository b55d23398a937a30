internal import CountersignCore

/// How much the gateway logs. Each level holds those before it.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    /// Nothing.
    case off
    /// Answers of 500 and above, and failures of the gateway itself.
    case error
    /// Refused requests, and tokens that were not good.
    case warning
    /// Every request but those for health and metrics.
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
