package import GatewayModel

/// A connection to NATS servers. Used by one thread at a time.
package protocol StreamConnection: AnyObject {
    /// Sends a request to the JetStream API and returns the JSON response. Throws `connection` after a
    /// time-out, `noStreams` without a responder, and `rejected` without permission.
    func request(_ subject: String, _ body: [UInt8]) throws(StreamError) -> [UInt8]

    /// Passes a message to the connection, which may send it later. The acknowledgement has the same
    /// `number`; without a number there is no acknowledgement.
    func publish(_ message: StreamMessage, number: UInt64?) throws(StreamError)

    /// Returns the next acknowledgement; nil after the time-out. With 0, does not wait.
    func answer(withinMilliseconds milliseconds: Int) throws(StreamError) -> StreamAnswer?

    func close()
}

/// A message to publish.
package struct StreamMessage: Sendable {
    package var subject: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
}

/// The acknowledgement of a message.
package struct StreamAnswer: Sendable {
    /// The number of the message.
    package var number: UInt64
    /// JSON; nil if no stream received the message.
    package var body: [UInt8]?

    package init(number: UInt64, body: [UInt8]?) {
        self.number = number
        self.body = body
    }
}

package typealias StreamConnect = @Sendable (StreamSettings) throws(StreamError) -> any StreamConnection
