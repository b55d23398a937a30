internal import CountersignCore
internal import Foundation

/// The level of log messages.
public enum LogLevel: Int, Sendable, Comparable {
    /// Nothing.
    case none
    /// Errors that prevent the SDK from working.
    case error
    /// Data loss and other problems.
    case warning
    /// Everything.
    case verbose

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// Writes the SDK's log to the standard error stream. Subclass it to write elsewhere.
open class Logger: @unchecked Sendable {
    // `@unchecked Sendable`: the only state has a lock; a subclass is responsible for its own.
    private let level = Lock(LogLevel.warning)

    /// Makes a logger.
    public init() {}

    /// The level of the log. Default: warnings and errors.
    open var logLevel: LogLevel {
        get { level.withLock { $0 } }
        set { level.withLock { $0 = newValue } }
    }

    /// Receives a message of the SDK.
    ///
    /// - Parameters:
    ///   - level: The severity.
    ///   - message: The text, without keys and tokens.
    open func log(_ level: LogLevel, message: String) {
        guard level <= logLevel, level != .none else { return }
        logMessage("[Exponea] [\(level)] \(message)")
    }

    /// Writes a formatted line.
    ///
    /// - Parameter message: The level and the text.
    open func logMessage(_ message: String) {
        FileHandle.standardError.write(Data((message + "\n").utf8))
    }
}
