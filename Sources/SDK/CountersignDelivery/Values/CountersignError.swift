public import CountersignCore
public import Foundation

/// An error of a call to the SDK. Calls throw no other errors, except those of the app's own code.
///
/// The description never holds a token, a key, a body or an event.
public struct CountersignError: Error, Sendable, CustomStringConvertible {
    /// An error code.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `not_stored`.
        public let rawValue: String

        /// Creates a value from its word. Words that this version does not define are allowed.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The configuration cannot work: a mistake in the app.
        public static let invalidConfiguration = Code(rawValue: "invalid_configuration")
        /// The event could not be stored; `detail` says why. Record it again later. After a failed flush of the disk,
        /// this or the next client may still send the event.
        public static let notStored = Code(rawValue: "not_stored")
        /// Too many events or bytes wait for the disk (`QueueLimits`), so the event was dropped. Record it again later.
        public static let tooManyUnsaved = Code(rawValue: "too_many_unsaved")
        /// The event is longer than `QueueLimits.maximumEventBytes`. It is stored in quarantine, not in the queue.
        public static let eventTooLarge = Code(rawValue: "event_too_large")
        /// The user has opted out, so the client records nothing.
        public static let optedOut = Code(rawValue: "opted_out")
        /// The queue file cannot be read or written now; `detail` says why. Try again later.
        public static let storageFailed = Code(rawValue: "storage_failed")
        /// `close()` was called.
        public static let closed = Code(rawValue: "closed")
    }

    /// The error code.
    public let code: Code
    /// Details, such as the server's message. Safe to log.
    public let detail: String
    /// The status of the server's response; nil without a response.
    public let status: Int?
    /// A Countersign server's code about the token; nil if the response has none.
    public let authCode: AuthErrorCode?
    /// The server's requested delay in seconds; nil if it did not request any.
    public let retryAfter: TimeInterval?
    package let request: String?
    package let owner: String?

    package init(_ code: Code, _ detail: String) {
        self.init(code, detail, request: nil)
    }

    package init(
        _ code: Code, _ detail: String, request: String?, owner: String? = nil, status: Int? = nil,
        authCode: AuthErrorCode? = nil, retryAfter: TimeInterval? = nil
    ) {
        self.code = code
        self.detail = detail
        self.request = request
        self.owner = owner
        self.status = status
        self.authCode = authCode
        self.retryAfter = retryAfter
    }

    /// `notStored`, because a system call has failed.
    static func failed(_ call: String, _ path: String, _ number: Int32 = errno) -> CountersignError {
        CountersignError(.notStored, "\(call): \(String(cString: strerror(number))) (\(path))")
    }

    /// True if the same call may succeed later although nothing else has changed.
    public var isWorthRetrying: Bool { Self.passing.contains(code.rawValue) }

    private static let passing: Set = [
        "network_connection", "not_stored", "not_understood", "provider_busy", "provider_failed",
        "provider_timed_out", "server_failed", "storage_failed", "sync_in_progress", "too_many_unsaved",
        "unreachable",
    ]

    /// Code, request, status and detail, as far as they are known.
    public var description: String {
        let place = request.map { " (\($0)\(status.map { ", status \($0)" } ?? ""))" } ?? ""
        return "\(code.rawValue)\(place): \(detail)"
    }
}
