internal import CountersignCore
internal import Foundation
internal import GatewayDelivery
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

#if NATS
    internal import GatewayNATS
#endif

struct Delivery: Sendable {
    /// The time limit for a webhook's response in milliseconds, in the range that Standard Webhooks recommends.
    private static let timeout = 20_000
    /// The threads that read events, render batches and store progress, for all kinds of delivery.
    private static let threads = 4

    let runner: DeliveryRunner
    let webhookCounts: WebhookCounts

    init(
        _ configuration: GatewayConfiguration, in storage: any Storage, stores: Stores,
        membership: Membership, outbound: OutboundPool, log: GatewayLog
    ) throws(GatewayError) {
        let directory = try storage.openControl(as: .schedule)
        let queue = OperationQueue()
        queue.name = "delivery"
        queue.maxConcurrentOperationCount = Self.threads
        let webhooks = Webhooks(
            directory, stores.deliveries, now: membership.sharedTime,
            hasDuty: { membership.has(.webhooks) },
            report: { endpoint, error in
                log.note(
                    .error, "attempt not recorded",
                    [("app", endpoint.appID), ("webhook", endpoint.id), ("detail", "\(error)")])
            },
            send: Self.send(on: outbound, queue, membership.sharedTime))
        // `EventFiles` is nil if the gateway has no folder for event files.
        let kinds: [(any WayKind)?] = [
            webhooks, EventFiles(configuration, directory, membership: membership, log: log),
            Streams(
                directory, earlier: try storage.openEarlierStreams(), hasDuty: { membership.has(.streams) },
                connect: Self.connect),
        ]
        webhookCounts = webhooks.counts
        runner = DeliveryRunner(
            kinds.compactMap(\.self),
            directory: directory, events: storage.log, consumers: stores.consumers,
            arrivals: stores.events.arrivals, log: log,
            pool: { work in queue.addOperation(work) }, now: membership.sharedTime)
    }

    private static func send(
        on outbound: OutboundPool, _ queue: OperationQueue, _ now: @escaping @Sendable () -> Date
    ) -> Webhooks.Send {
        { body, messageID, endpoint, isCancelled, done in
            let time = now()
            let headers = WebhookSignature.headers(
                id: messageID, timestamp: Int64(time.timeIntervalSince1970), body: body,
                keys: endpoint.keys(atMilliseconds: Milliseconds(time).count))
            WebhookDelivery(
                body: body, headers: headers, webhook: endpoint.target, timeoutMilliseconds: timeout,
                isCancelled: isCancelled
            ).perform(on: outbound) { attempt in queue.addOperation { done(attempt) } }
        }
    }

    @Sendable static func connect(_ settings: StreamSettings) throws(StreamError) -> any StreamConnection {
        #if NATS
            return try NATSConnection(to: settings)
        #else
            throw StreamError(
                .notBuilt,
                """
                this program was built without NATS, so events of this stream wait; build it with COUNTERSIGN_NATS=1 and \
                libnats-dev installed, or delete the stream
                """
            )
        #endif
    }
}
