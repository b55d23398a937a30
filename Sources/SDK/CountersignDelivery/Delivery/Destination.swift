package import CountersignTransport
package import Foundation

/// Where records go: makes requests of them and reads the answers. Nothing else in the pipeline knows what their bytes say.
package protocol Destination: Sendable {
    /// The whole request that carries `events`: at least one, all of one owner. The engine puts the credential into it.
    ///
    /// `attempt` is 1 for the first request with the first of these events, 2 for the next one, and so on; `deviceID` is that
    /// of records without an owner, and `now` the device's time.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// What an answer to a request with these events means. The indices in its rejections are places in `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
