package import Foundation

/// The content of a record. Only the client and the destination know its format.
package protocol RecordContent: Sendable {
    /// The estimated size in bytes. Must be fast to compute.
    var estimatedBytes: Int { get }

    /// The bytes of `record` for the queue and the destination. `anonymousID` is the device's id, for records
    /// without an owner.
    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8]
}

/// A recorded event in memory, before it is rendered for the write-ahead log.
package struct EventRecord: Sendable {
    package typealias Completion = @Sendable (Result<String, CountersignError>) -> Void

    package let content: any RecordContent
    /// Created with the record. The server uses it to drop duplicates.
    package let messageID: String
    /// The owner at the time of recording; nil if there was no user.
    package let userID: String?
    package let sessionID: String
    package let timestamp: Date
    /// The size estimated when the event was recorded.
    var bytes = 0
    /// Called with the message id when the event is durable, or with an error.
    var completion: Completion?
}
