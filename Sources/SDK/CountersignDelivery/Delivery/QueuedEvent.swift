package struct QueuedEvent: Sendable, Hashable {
    /// Never used twice.
    package let sequence: Int64
    package let messageID: String
    package let userID: String?
    /// One record as JSON, in the format of its `Destination`.
    package let body: [UInt8]

    package init(sequence: Int64, messageID: String, userID: String?, body: [UInt8]) {
        self.sequence = sequence
        self.messageID = messageID
        self.userID = userID
        self.body = body
    }
}
