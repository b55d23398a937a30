package import CountersignTransport
package import Foundation

/// The server of a pipeline: creates requests from records and reads the responses. The rest of the
/// pipeline treats records as opaque bytes.
package protocol Destination: Sendable {
    /// The whole request that carries `events`: at least one, all of one owner. The engine puts the credential into it.
    ///
    /// `attempt` is 1 for the first request with the first of these events, 2 for the next one, and so on; `deviceID` is that
    /// of records without an owner, and `now` the device's time.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// The meaning of a response to a request with these events. Rejections have indices into `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
