public import CountersignTransport
public import Foundation

/// The events of an app, read by a named consumer. The gateway stores the consumer's position.
///
/// ```swift
/// let consumer = try EventConsumer(endpoint: gateway, app: "shop", token: token, name: "billing")
/// for try await batch in consumer {
///     await ledger.book(batch)  // commits
///     try await batch.acknowledge()
/// }
/// ```
///
/// The elements are batches, so that one transaction can hold the work and the position of a whole batch. Each event
/// then takes effect once, and a thousand events need one commit and one acknowledgement.
///
/// The sequence waits while there are no events. It retries without limit when the gateway cannot be reached or
/// replies with 408, 429 or 5xx. It ends when its task is cancelled, and throws permanent errors such as `forbidden`.
/// If a cancellation loses a response with events, these events are available again when their lease expires.
///
/// Each loop over a consumer is a worker. There are at most as many concurrent workers as partitions.
public struct EventConsumer: AsyncSequence, Sendable {
    /// Events leased to this worker.
    public typealias Element = EventBatch
    /// A permanent error.
    public typealias Failure = ConsumerError

    private let connect: @Sendable () throws(ConsumerError) -> GatewayConnection
    private let name: String
    private let limit: Int
    private let leaseSeconds: Int

    /// Creates a consumer without sending a request.
    ///
    /// - Parameters:
    ///   - endpoint: The gateway's URL.
    ///   - app: The app's ID.
    ///   - token: An API token with the scope `reader` for this app.
    ///   - name: The name of an existing consumer: `countersign consumer create APP NAME`.
    ///   - limit: Maximum number of events in a batch, 1 to 1,000. A batch also ends with the event that reaches 1
    ///     MiB.
    ///   - leaseSeconds: Duration of the lease, 5 to 600 seconds. Another worker then receives unacknowledged events.
    ///   - transport: The HTTP transport of all loops. It must send concurrently, so that an acknowledgement does not
    ///     wait for a poll. Nil: each loop creates two of the SDK's transports.
    ///   - clock: The clock.
    /// - Throws: `invalid_configuration`.
    public init(
        endpoint: URL, app: String, token: String, name: String, limit: Int = 100, leaseSeconds: Int = 60,
        transport: (any HTTPTransport)? = nil, clock: any ClientClock = SystemClock()
    ) throws(ConsumerError) {
        try self.init(
            endpoint: endpoint, app: app, token: token, name: name, limit: limit,
            leaseSeconds: leaseSeconds, transport: transport, clock: clock,
            fraction: { .random(in: 0...1) })
    }

    package init(
        endpoint: URL, app: String, token: String, name: String, limit: Int = 100, leaseSeconds: Int = 60,
        transport: (any HTTPTransport)?, clock: any ClientClock, fraction: @escaping @Sendable () -> Double
    ) throws(ConsumerError) {
        guard GatewayConnection.isName(name) else {
            throw GatewayConnection.invalid("name", "must be the consumer's: 1 to 64 of A-Z a-z 0-9 . _ -")
        }
        guard 1...1_000 ~= limit else { throw GatewayConnection.invalid("limit", "must be 1 to 1000") }
        guard 5...600 ~= leaseSeconds else { throw GatewayConnection.invalid("leaseSeconds", "not 5 to 600") }
        self.name = name
        self.limit = limit
        self.leaseSeconds = leaseSeconds
        connect = { () throws(ConsumerError) in
            try GatewayConnection(
                endpoint: endpoint, app: app, token: token, transport: transport, clock: clock,
                fraction: fraction)
        }
        _ = try connect()
    }

    // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(connect, GatewayRequest.poll(name, limit: limit, leaseSeconds: leaseSeconds), name)
    }

    /// One worker.
    public struct AsyncIterator: AsyncIteratorProtocol {
        // swift-format-ignore: AllPublicDeclarationsHaveDocumentation
        public typealias Failure = ConsumerError

        private let request: GatewayRequest
        private let name: String
        /// Separate connections. An acknowledgement waits for a poll only over a serial transport of the app.
        private let connections: Result<(polls: GatewayConnection, leases: GatewayConnection), ConsumerError>
        private let returns = LeaseReturns()
        private var unworked = 0

        init(
            _ connect: () throws(ConsumerError) -> GatewayConnection, _ request: GatewayRequest,
            _ name: String
        ) {
            self.request = request
            self.name = name
            connections = Result { () throws(ConsumerError) in (try connect(), try connect()) }
        }

        /// The next batch; nil when the task is cancelled.
        public mutating func next() async throws(ConsumerError) -> EventBatch? {
            do throws(ConsumerError) {
                return try await lease()
            } catch {
                return try error.endOfSequence()
            }
        }

        private mutating func lease() async throws(ConsumerError) -> EventBatch? {
            let (polls, leases) = try connections.get()
            // Back off after an unacknowledged batch, because the gateway would return the same batch at once.
            unworked = await returns.finish() > 0 ? unworked + 1 : 0
            if unworked > 0 { try await polls.pause(afterFailure: unworked) }
            while !Task.isCancelled {
                let document = try await polls.events(request)
                if let lease = document.members.lease {
                    return EventBatch(document, lease, EventLease(lease.id, of: name, leases, returns))
                }
            }
            return nil
        }
    }
}
