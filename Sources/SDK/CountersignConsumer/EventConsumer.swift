public import CountersignTransport
public import Foundation

/// The events of an app, read by a named consumer: the gateway remembers how far it has come.
///
/// ```swift
/// let consumer = try EventConsumer(endpoint: gateway, app: "shop", token: token, name: "billing")
/// for try await batch in consumer {
///     await ledger.book(batch)  // commits
///     try await batch.acknowledge()
/// }
/// ```
///
/// It is a sequence of batches and not of events, because a batch is what one transaction should hold: with the work and the
/// position in the same one each event has its effect once, and a thousand events cost one commit and one acknowledgement.
///
/// The sequence waits when there is nothing and tries again when the gateway cannot be reached, answers 429 or 5xx, forever. It
/// ends when its task is cancelled, and throws what another try would not change, such as `forbidden`. What was leased in the
/// moment of a cancellation is free when the lease expires.
///
/// Each loop over a consumer is a worker. As many as the consumer has partitions can work at the same time.
public struct EventConsumer: AsyncSequence, Sendable {
    /// Events that are leased to this worker.
    public typealias Element = EventBatch
    /// What another try would not change.
    public typealias Failure = ConsumerError

    private let connect: @Sendable () throws(ConsumerError) -> GatewayConnection
    private let name: String
    private let limit: Int
    private let leaseSeconds: Int

    /// Makes a consumer's reader. Nothing is sent yet.
    ///
    /// - Parameters:
    ///   - endpoint: The gateway's address.
    ///   - app: The app's id.
    ///   - token: An API token with the scope `reader` for this app.
    ///   - name: The consumer's name. It exists: `countersign consumer create APP NAME`.
    ///   - limit: The most events of a batch, 1 to 1,000. A batch also ends with the event that brings it to 1 MiB.
    ///   - leaseSeconds: How long the work on a batch may take before another worker gets it, 5 to 600 seconds.
    ///   - transport: How to send requests, two at the same time; nil for one of its own for each loop, as the SDK's.
    ///   - clock: Where to read the time and how to wait.
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
            throw GatewayConnection.invalid("name", "is the consumer's: 1 to 64 of A-Z a-z 0-9 . _ -")
        }
        guard 1...1_000 ~= limit else { throw GatewayConnection.invalid("limit", "is 1 to 1000") }
        guard 5...600 ~= leaseSeconds else { throw GatewayConnection.invalid("leaseSeconds", "is 5 to 600") }
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

        /// The least seconds between two polls that found nothing: a gateway that is about to stop lets nobody wait.
        private static let leastWait: TimeInterval = 1

        private let request: GatewayRequest
        private let name: String
        /// Apart, so that an acknowledgement never waits for a poll.
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
                if error.code == .cancelled { return nil }
                throw error
            }
        }

        private mutating func lease() async throws(ConsumerError) -> EventBatch? {
            let (polls, leases) = try connections.get()
            // Whoever lets go of one batch after another would get the same one again at once.
            unworked = await returns.settle() > 0 ? unworked + 1 : 0
            if unworked > 0 { try await polls.pause(afterFailure: unworked) }
            while !Task.isCancelled {
                let began = polls.clock.uptime
                guard let document = EventDocument(try await polls.answer(to: request)) else {
                    throw GatewayConnection.unreadable
                }
                if let lease = document.members.lease {
                    return EventBatch(document, lease, EventLease(lease.id, of: name, leases, returns))
                }
                let missing = Self.leastWait - (polls.clock.uptime - began)
                if document.members.has_more != true, missing > 0 { try await polls.sleep(missing) }
            }
            return nil
        }
    }
}
