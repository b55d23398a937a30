package import CountersignTransport
package import Foundation

/// The server of a pipeline: creates requests from records and reads the responses. The rest of the
/// pipeline treats records as opaque bytes.
package protocol Destination: Sendable {
    /// Returns the request for one or more events of one owner. The engine adds the credential.
    ///
    /// `attempt` counts the requests with the first of these events, from 1. `deviceID` is the device's id
    /// for records without an owner, and `now` the device's time.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// The meaning of a response to a request with these events. Rejections have indices into `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
