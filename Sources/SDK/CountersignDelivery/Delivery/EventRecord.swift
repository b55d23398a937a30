package import Foundation

/// What somebody records. Only the client that makes it and the destination that sends it know what it says.
package protocol RecordContent: Sendable {
    /// About how many bytes it takes: quick to get, never asked to be exact.
    var estimatedBytes: Int { get }

    /// The bytes of `record` that the queue keeps until the destination sends them. `anonymousID` is the device's, for records
    /// without an owner.
    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8]
}

/// One thing that was recorded, before it is rendered for the queue.
package struct EventRecord: Sendable {
    package let content: any RecordContent
    /// Made when it was recorded and never changed: what a server drops duplicates by.
    package let messageID: String
    /// Whose it is, as of the moment of recording; nil for nobody's.
    package let userID: String?
    package let sessionID: String
    package let timestamp: Date
}
