package import CountersignTransport
package import Foundation

/// Creates requests from records and reads the responses. Elsewhere in the pipeline, records are opaque bytes.
package protocol Destination: Sendable {
    /// `attempt` is 1 plus the consecutive failures of the server, the network, the queue file and the owner's
    /// credentials. `deviceID` is for records without an owner. The engine adds the credential.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// Rejections have indices into `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
