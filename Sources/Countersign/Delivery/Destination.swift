package import Foundation

/// Where records go: makes requests of them and reads the answers. Nothing else in the pipeline knows what their bytes say.
package protocol Destination: Sendable {
    /// A request that carries `events`, all of one owner. The engine puts the credential into it.
    ///
    /// - Parameters:
    ///   - events: At least one.
    ///   - attempt: 1 for the first request with the first of these events, 2 for the next one, and so on.
    ///   - deviceID: The id under which records without an owner are sent.
    ///   - now: The device's time.
    /// - Returns: The request, whole.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// What an answer to a request with these events means. The indices in its rejections are places in `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
