package import Foundation

/// The content of a record. Only the client and the destination know its format.
package protocol RecordContent: Sendable {
    /// The estimated size in bytes. Must be fast to compute.
    var estimatedBytes: Int { get }

    /// The bytes of `record` that the queue keeps until the destination sends them. `anonymousID` is the device's, for records
    /// without an owner.
    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8]
}

/// One thing that was recorded, before it is rendered for the queue.
package struct EventRecord: Sendable {
    package let content: any RecordContent
    /// Created when the record is made and never changed. The server uses it to drop duplicates.
    package let messageID: String
    /// The owner at the time of recording; nil if there was no user.
    package let userID: String?
    package let sessionID: String
    package let timestamp: Date
}
