/// What went wrong in a call to the SDK.
///
/// The description never holds a token, a key or an event.
public struct CountersignError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A stable word, such as `not_stored`.
        public let rawValue: String

        /// Any word.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The configuration cannot work: a mistake in the app.
        public static let invalidConfiguration = Code(rawValue: "invalid_configuration")
        /// The event could not be stored and is not in the queue; `detail` says why. Record it again later.
        public static let notStored = Code(rawValue: "not_stored")
        /// Too many events wait in memory for the disk (`QueueLimits.maximumUnsavedEvents`). Record it again later.
        public static let tooManyUnsaved = Code(rawValue: "too_many_unsaved")
        /// The event is longer than `QueueLimits.maximumEventBytes`. It is kept in quarantine and never sent.
        public static let eventTooLarge = Code(rawValue: "event_too_large")
        /// The client records nothing: the person has opted out.
        public static let optedOut = Code(rawValue: "opted_out")
        /// The queue file cannot be read or written now; `detail` says why. Try again later.
        public static let storageFailed = Code(rawValue: "storage_failed")
        /// `close()` was called.
        public static let closed = Code(rawValue: "closed")
    }

    /// What went wrong.
    public let code: Code
    /// More about it: safe to log.
    public let detail: String

    /// Makes an error.
    public init(_ code: Code, _ detail: String) {
        self.code = code
        self.detail = detail
    }

    /// The code and the detail.
    public var description: String { "\(code.rawValue): \(detail)" }
}
