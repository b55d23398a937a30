package import GatewayModel

/// A connection to servers of NATS. It belongs to one thread at a time.
package protocol StreamConnection: AnyObject {
    /// Asks JetStream's API and returns what it answers, JSON. Throws `connection` without an answer in time, `noStreams` when
    /// nobody listens.
    func request(_ subject: String, _ body: [UInt8]) throws(SinkError) -> [UInt8]

    /// Hands a message to the connection, which may still be on its way afterwards. `number` comes back with the answer; without
    /// one there is none.
    func publish(_ message: StreamMessage, number: UInt64?) throws(SinkError)

    /// The next answer to a message; nil when none comes within so many milliseconds, 0 for one that is here already.
    func answer(withinMilliseconds milliseconds: Int) throws(SinkError) -> StreamAnswer?

    func close()
}

/// A message on its way to a stream.
package struct StreamMessage: Sendable {
    package var subject: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
}

/// What a server says about a message.
package struct StreamAnswer: Sendable {
    /// Of the message.
    package var number: UInt64
    /// JSON; nil when no stream has heard the message.
    package var body: [UInt8]?

    package init(number: UInt64, body: [UInt8]?) {
        self.number = number
        self.body = body
    }
}
