package import Foundation

/// How events and answers look on the wire of one kind of server.
package protocol DeliveryDialect: Sendable {
    /// One event as it is kept in the queue and later put into a request.
    func render(_ record: EventRecord, anonymousID: String) -> [UInt8]

    /// A request that carries `events`, all of one user. The engine puts the credential into it.
    ///
    /// - Parameters:
    ///   - events: At least one.
    ///   - attempt: 1 for the first request with the first of these events, 2 for the next one, and so on.
    ///   - deviceID: The id under which events without a user are sent.
    ///   - now: The device's time.
    /// - Returns: The request, whole.
    func request(for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date) -> TransportRequest

    /// What an answer to a request with these events means. The indices in its rejections are places in `events`.
    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer
}
