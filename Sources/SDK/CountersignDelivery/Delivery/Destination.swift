package import CountersignTransport
package import Foundation

/// Creates requests from records and reads the responses. Elsewhere in the pipeline, records are opaque bytes.
package protocol Destination: Sendable {
    /// `attempt` counts the requests with the first of these events, from 1. `deviceID` is for records without an
    /// owner. The engine adds the credential.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// Rejections have indices into `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
