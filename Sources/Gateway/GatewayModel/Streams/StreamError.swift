internal import CountersignCore

/// An error that stops the delivery to a stream. The gateway retries until the cause of the error is gone.
package struct StreamError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: String, Sendable, TextEnum {
        case cannotConnect = "cannot_connect"
        /// The servers reject the credentials, or a credentials file cannot be read.
        case rejected = "refused"
        case tls
        case connection
        case noStreams = "no_jetstream"
        /// A stream of that name exists with an incompatible configuration.
        case streamDiffers = "stream_differs"
        /// The stream rejects messages, for example because it is full.
        case streamRejects = "stream_refuses"
        /// The stream's last message does not contain a position to resume from.
        case markUnusable = "mark_unusable"
        /// An event exceeds the servers' maximum message size.
        case tooLarge = "event_too_large"
        case storage
        case notBuilt = "not_built"
    }

    package let code: Code
    /// A description of the error and its remedy; contains no event and no credential.
    package let reason: String

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package var description: String { reason }
}
