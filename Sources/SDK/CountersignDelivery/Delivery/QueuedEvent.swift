/// An event of the queue, as it was rendered when it was recorded.
package struct QueuedEvent: Sendable, Hashable {
    /// The sequence number in the queue; never used twice.
    package let sequence: Int64
    package let messageID: String
    /// The user; nil if no user was set.
    package let userID: String?
    /// One message of the dialect, as JSON.
    package let body: [UInt8]

    package init(sequence: Int64, messageID: String, userID: String?, body: [UInt8]) {
        self.sequence = sequence
        self.messageID = messageID
        self.userID = userID
        self.body = body
    }
}
