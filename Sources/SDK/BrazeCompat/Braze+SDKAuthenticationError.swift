internal import CountersignDelivery

extension Braze {
    /// A signature that the server refused.
    ///
    /// Its description leaves the signature out: that is a credential, and must not be logged.
    public struct SDKAuthenticationError: Error, Sendable, CustomStringConvertible, CustomReflectable {
        /// What was wrong: 10 to 28 as in Braze's table, 30 and above are Countersign's own.
        public let code: Int
        /// The same as a word, such as `EXPIRED`.
        public let reason: String?
        /// The user of the request. Compare it with the current one before getting a new signature.
        public let userId: String?
        /// The signature that was refused; empty if there was none.
        public let signature: String
        /// True if the server took the data all the same, since the app does not require signatures.
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

        /// The same without the signature, for `dump`.
        public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
    }
}
