package import Foundation

/// The content of a record. Only the client and the destination know its format.
package protocol RecordContent: Sendable {
    /// In bytes. Must be fast to compute.
    var estimatedBytes: Int { get }

    /// The bytes for the queue and the destination. `anonymousID` is the device's id, for records without a user.
    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8]
}

/// A recorded event in memory, before it is rendered for the write-ahead log.
package struct EventRecord: Sendable {
    package typealias Completion = @Sendable (Result<String, CountersignError>) -> Void

    package let content: any RecordContent
    /// A gateway uses it to drop duplicates.
    package let messageID: String
    /// The owner passed to `Recorder.record`, or else the user at the time of recording; nil without either.
    package let userID: String?
    package let sessionID: String
    package let timestamp: Date
    /// Estimated when the event was recorded.
    var bytes = 0
    /// Called with the message id when the event is durable, or with an error.
    var completion: Completion?
}
