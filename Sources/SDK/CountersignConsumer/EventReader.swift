public import CountersignTransport
public import Foundation

/// Events that were read by position.
public struct EventPage: Sendable {
    /// The events in the order of storing.
    public let events: [ConsumedEvent]
    /// Where to go on: store it with the work.
    public let next: String
    /// True if events between the position and these were deleted by retention.
    public let eventsMissed: Bool
}

/// The events of an app, read by position: your backend remembers how far it has come, and the gateway nothing.
///
/// ```swift
/// let reader = try EventReader(endpoint: gateway, app: "shop", token: token, after: position)
/// for try await page in reader {
///     await ledger.book(page)  // commits the work, and `page.next`
/// }
/// ```
///
/// It waits, tries again and ends as an ``EventConsumer`` does.
public struct EventReader: AsyncSequence, Sendable {
    /// Events, at least one unless some were missed.
    public typealias Element = EventPage
    /// What another try would not change.
    public typealias Failure = ConsumerError

    private let connection: GatewayConnection
    private let position: String?
    private let filter: EventFilter
    private let limit: Int

    /// Makes a reader. Nothing is sent yet.
    ///
    /// - Parameters:
    ///   - endpoint: The gateway's address.
    ///   - app: The app's id.
    ///   - token: An API token with the scope `reader` for this app.
    ///   - position: After which event to begin; nil for the oldest that is kept.
    ///   - filter: Which events to read.
    ///   - limit: The most events of a page, 1 to 1,000. A page also ends with the event that brings it to 1 MiB.
    ///   - transport: How to send requests; nil for one of its own, as the SDK's.
    ///   - clock: Where to read the time and how to wait.
    /// - Throws: `invalid_configuration`.
    public init(
        endpoint: URL, app: String, token: String, after position: String? = nil,
        filter: EventFilter = EventFilter(), limit: Int = 100, transport: (any HTTPTransport)? = nil,
        clock: any ClientClock = SystemClock()
    ) throws(ConsumerError) {
        guard 1...1_000 ~= limit else { throw GatewayConnection.invalid("limit", "is 1 to 1000") }
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

        /// As `EventConsumer`'s.
        private static let leastWait: TimeInterval = 1

        let connection: GatewayConnection
        let filter: EventFilter
        let limit: Int
        var position: String?

        /// The next page; nil when the task is cancelled.
        public mutating func next() async throws(ConsumerError) -> EventPage? {
            do throws(ConsumerError) {
                while !Task.isCancelled {
                    if let page = try await page() { return page }
                }
                return nil
            } catch {
                if error.code == .cancelled { return nil }
                throw error
            }
        }

        private mutating func page() async throws(ConsumerError) -> EventPage? {
            let began = connection.clock.uptime
            let answer = try await connection.answer(to: .events(after: position, filter, limit: limit))
            guard let document = EventDocument(answer), let next = document.members.next else {
                throw GatewayConnection.unreadable
            }
            position = next
            let isMissed = document.members.events_missed ?? false
            if !document.events.isEmpty || isMissed {
                return EventPage(events: document.events, next: next, eventsMissed: isMissed)
            }
            let missing = Self.leastWait - (connection.clock.uptime - began)
            if document.members.has_more != true, missing > 0 { try await connection.sleep(missing) }
            return nil
        }
    }
}
