internal import CountersignCore

/// An error that stops the delivery to a stream. Delivery is retried, and resumes once the cause is gone.
package struct StreamError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: String, Sendable, TextEnum {
        /// No server responds at these addresses.
        case cannotConnect = "cannot_connect"
        /// The servers reject the credentials, or a credentials file cannot be read.
        case rejected
        /// TLS has failed: the certificate is not valid, or the CA file cannot be read.
        case tls
        /// A server did not respond in time, or the connection was closed.
        case connection
        /// JetStream is not enabled on the servers or for the account.
        case noStreams = "no_jetstream"
        /// A stream of that name exists with an incompatible configuration.
        case streamDiffers = "stream_differs"
        /// The stream rejects messages, for example because it is full.
        case streamRejects = "stream_refuses"
        /// The stream's last message does not contain a position to resume from.
        case markUnusable = "mark_unusable"
        /// An event exceeds the servers' maximum message size.
        case tooLarge = "event_too_large"
        /// The events cannot be read.
        case storage
        /// The program was built without NATS support.
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
