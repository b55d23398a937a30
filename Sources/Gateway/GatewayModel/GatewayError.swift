internal import CountersignCore

/// An error of the gateway or its data directory.
public struct GatewayError: Error, Sendable, CustomStringConvertible {
    /// The kind of error. Open: a later version may add kinds.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// A short word in snake case.
        public let rawValue: String

        /// Creates a code with any name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public static func == (left: Self, right: Self) -> Bool { left.rawValue == right.rawValue }
        package static func != (left: Self, right: Self) -> Bool { !(left == right) }
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }

        /// The data directory or a file in it cannot be read or written.
        public static let dataDirectory = Code(rawValue: "data_directory")
        /// The address cannot be bound: it is in use, not this machine's or not allowed, or no file descriptor is free.
        public static let cannotBind = Code(rawValue: "cannot_bind")
        /// Another gateway runs on this data directory.
        public static let alreadyRunning = Code(rawValue: "already_running")
        /// The named object, such as an app or a key, does not exist.
        public static let notFound = Code(rawValue: "not_found")
        /// The change would break a rule, such as a fourth key or a duplicate id.
        public static let conflict = Code(rawValue: "conflict")
        /// An argument is not valid, such as a key that cannot be parsed.
        public static let invalid = Code(rawValue: "invalid")
        /// The database could not read or write.
        public static let storage = Code(rawValue: "storage")
    }

    /// The kind of error.
    public let code: Code
    /// A description of the error and its remedy. Contains no key, token or body.
    public let reason: String
    /// The path of the setting's member at fault, with dots between the names; nil when unknown.
    package var member: String?
    package var hint: String?

    /// - Parameters:
    ///   - code: The kind of error.
    ///   - reason: A description of the error and its remedy.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package init(_ code: Code, _ reason: String, member: String) {
        self.init(code, reason)
        self.member = member
    }

    package init(_ code: Code, _ reason: String, hint: String?) {
        self.init(code, reason)
        self.hint = hint
    }

    /// The reason.
    public var description: String { reason }
}
