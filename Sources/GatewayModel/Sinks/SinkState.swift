internal import CountersignCore

/// How far a sink has come, as its relay saw it last.
package struct SinkState: Sendable, Equatable {
    /// The epoch of the sink that this belongs to.
    package var epoch: Int64 = 0
    /// The number of the last event that is in the stream; nil before the stream was read.
    package var markSequence: Int64?
    /// The number of its message in the stream.
    package var streamSequence: Int64 = 0
    /// Milliseconds since 1970 when the stream said so.
    package var markMilliseconds: Int64?
    /// Why nothing is published now; nil while it works.
    package var error: SinkError?
    /// Milliseconds since 1970 since when nothing works; nil while it does.
    package var failingSinceMilliseconds: Int64?

    package init(epoch: Int64 = 0) {
        self.epoch = epoch
    }
}

/// Why a relay cannot go on. It tries again by itself, and goes on once the reason is gone.
package struct SinkError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Code: String, Sendable, TextEnum {
        /// No server answers at these addresses.
        case cannotConnect = "cannot_connect"
        /// The servers do not take the credentials, or a file of them cannot be read.
        case refused
        /// TLS has failed: the certificate is not valid, or the CA file cannot be read.
        case tls
        /// A server did not answer in time, or the connection ended.
        case connection
        /// The servers have no JetStream, or this account has not.
        case noStreams = "no_jetstream"
        /// There is a stream of that name which the sink cannot use.
        case streamDiffers = "stream_differs"
        /// The stream takes no message: it is full, or its server says otherwise.
        case streamRefuses = "stream_refuses"
        /// The stream's last message says nothing about where to resume.
        case markUnusable = "mark_unusable"
        /// An event is larger than the servers take.
        case tooLarge = "event_too_large"
        /// The events cannot be read.
        case storage
        /// The program was built without NATS.
        case notBuilt = "not_built"
    }

    package let code: Code
    /// What and what to do; no event and no credential.
    package let reason: String

    package init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package var description: String { reason }
}
