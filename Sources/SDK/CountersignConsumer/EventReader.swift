public import CountersignTransport
public import Foundation

/// Events read by position.
public struct EventPage: Sendable {
    /// The events in storage order.
    public let events: [ConsumedEvent]
    /// The position after this page. Store it in the transaction of your work.
    public let next: String
    /// Whether retention has deleted events between the position and this page.
    public let eventsMissed: Bool
}

/// The events of an app, read by position. The backend stores the position; the gateway stores no state.
///
/// ```swift
/// let reader = try EventReader(endpoint: gateway, app: "shop", token: token, after: position)
/// for try await page in reader {
///     await ledger.book(page)  // commits the work, and `page.next`
/// }
/// ```
///
/// Waits, retries and ends like ``EventConsumer``.
public struct EventReader: AsyncSequence, Sendable {
    /// A page with at least one event, unless events were missed.
    public typealias Element = EventPage
    /// A permanent error.
    public typealias Failure = ConsumerError

    private let connection: GatewayConnection
    private let position: String?
    private let filter: EventFilter
    private let limit: Int

    /// Creates a reader without sending a request.
    ///
    /// - Parameters:
    ///   - endpoint: The gateway's URL.
    ///   - app: The app's ID.
    ///   - token: An API token with the scope `reader` for this app.
    ///   - position: The position of the last event already read; nil to start with the oldest stored event.
    ///   - filter: The events to read.
    ///   - limit: Maximum number of events in a page, 1 to 1,000. A page also ends with the event that reaches 1 MiB.
    ///   - transport: The HTTP transport; nil for the SDK's.
    ///   - clock: The clock.
    /// - Throws: `invalid_configuration`.
    public init(
        endpoint: URL, app: String, token: String, after position: String? = nil,
        filter: EventFilter = EventFilter(), limit: Int = 100, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws(ConsumerError) {
        guard 1...1_000 ~= limit else { throw GatewayConnection.invalid("limit", "must be 1 to 1000") }
        connection = try GatewayConnection(
            endpoint: endpoint, app: app, token: token, transport: transport, clock: clock,
            fraction: { .random(in: 0...1) })
        self.position = position
        self.filter = filter
        self.limit = limit
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(connection: connection, filter: filter, limit: limit, position: position)
    }

    /// One pass over the events.
    public struct AsyncIterator: AsyncIteratorProtocol {
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public typealias Failure = ConsumerError

        let connection: GatewayConnection
        let filter: EventFilter
        let limit: Int
        var position: String?

        /// The next page; nil when the task is cancelled.
        public mutating func next() async throws(ConsumerError) -> EventPage? {
            do throws(ConsumerError) {
                while !Task.isCancelled {
                    let document = try await connection.events(.events(after: position, filter, limit: limit))
                    guard let next = document.members.next else { throw GatewayConnection.unreadable }
                    position = next
                    if !document.isEmpty {
                        return EventPage(
                            events: document.events, next: next,
                            eventsMissed: document.members.events_missed ?? false)
                    }
                }
                return nil
            } catch {
                return try error.endOfSequence()
            }
        }
    }
}
