internal import CountersignDelivery

extension Braze {
    /// A signature that the server rejected. The description omits this credential: never log it.
    public struct SDKAuthenticationError: Error, Sendable, CustomStringConvertible, CustomReflectable {
        /// The error code: 10 to 28 as in Braze's documentation; 30 and above are Countersign's.
        public let code: Int
        /// The name of the code, such as `EXPIRED`.
        public let reason: String?
        /// The user of the request. Compare it with the current one before getting a new signature.
        public let userId: String?
        /// The rejected signature; empty if the request had no signature.
        public let signature: String
        /// True if the server accepted the data nevertheless, because the app does not require signatures.
        public let optional: Bool

        init(_ failure: AuthenticationFailure) {
            code = failure.code.rawValue
            reason = failure.reason
            userId = failure.userID
            signature = failure.token?.rawValue ?? ""
            optional = failure.isOptional
        }

        /// Code, reason and user.
        public var description: String {
            "\(code) \(reason ?? "")\(optional ? " (optional)" : "")\(userId.map { " for \($0)" } ?? "")"
        }

        /// Omits the signature from `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
