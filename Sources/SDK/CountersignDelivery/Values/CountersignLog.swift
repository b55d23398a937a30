internal import Foundation

#if canImport(os)
    internal import os
#endif

/// Receives the SDK's log lines. Without a log the SDK logs nothing.
///
/// A line has a constant text and values, which are created only if `isEnabled` returns true. Values never contain a
/// token, a key or the content of an event.
public struct CountersignLog: Sendable {
    /// The severity of a line.
    public enum Level: Sendable, Comparable, CaseIterable {
        /// Normal operation.
        case debug
        /// Information for operators.
        case info
        /// Data was lost, or something failed. Repetitions of some failures have the level `info`.
        case warning
    }

    private let isEnabled: @Sendable (Level) -> Bool
    private let output: @Sendable (Level, String, [String: String]) -> Void

    /// Makes a log.
    ///
    /// - Parameters:
    ///   - isEnabled: Returns whether to log lines of a level. Called for each line, so it must be fast.
    ///   - write: Writes a line from its level, text and values. Both closures are called on several threads.
    public init(
        isEnabled: @escaping @Sendable (Level) -> Bool,
        write: @escaping @Sendable (Level, String, [String: String]) -> Void
    ) {
        self.isEnabled = isEnabled
        output = write
    }

    /// The system's log on Apple platforms, under the subsystem `countersign`; the standard error stream elsewhere.
    package static func standard(_ level: Level) -> CountersignLog {
        CountersignLog(isEnabled: { $0 >= level }) { level, message, values in
            let line = line(message, values)
            #if canImport(os)
                let logger = Logger(subsystem: "countersign", category: "sdk")
                switch level {
                case .debug: logger.debug("\(line, privacy: .public)")
                case .info: logger.info("\(line, privacy: .public)")
                case .warning: logger.warning("\(line, privacy: .public)")
                }
            #else
                FileHandle.standardError.write(Data("[countersign] \(level) \(line)\n".utf8))
            #endif
        }
    }

    /// The message, and then the values sorted by name.
    package static func line(_ message: String, _ values: [String: String]) -> String {
        ([message] + values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
    }

    package func callAsFunction(
        _ level: Level, _ message: StaticString, _ values: @autoclosure () -> [String: String]
    ) {
        guard isEnabled(level) else { return }
        output(level, "\(message)", values())
    }

    /// For messages that are not constant, such as a vendor's documented message that contains a name.
    package func write(_ level: Level, _ message: String, _ values: [String: String]) {
        guard isEnabled(level) else { return }
        output(level, message, values)
    }
}
