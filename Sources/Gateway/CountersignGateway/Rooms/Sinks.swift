internal import CountersignCore
internal import Foundation
internal import GatewayDelivery
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

#if NATS
    internal import GatewayNATS
#endif

enum Sinks {
    static func runner(
        in storage: any Storage, stores: Stores, log: GatewayLog, now: @escaping @Sendable () -> Date
    ) throws(GatewayError) -> SinkRunner {
        SinkRunner(
            directory: try storage.openControl(as: .schedule),
            dependencies: SinkDependencies(
                events: storage.log, arrivals: stores.events.arrivals, consumers: stores.consumers,
                store: try storage.openSinks(), log: log, now: now, connect: connect))
    }

    static func connect(_ sink: EventSink) throws(SinkError) -> any StreamConnection {
        #if NATS
            return try NATSConnection(to: sink)
        #else
            throw SinkError(
                .notBuilt,
                """
                this program was built without NATS, so events of this stream wait; build it with COUNTERSIGN_NATS=1 and \
                libnats-dev installed, or delete the stream
                """
            )
        #endif
    }

    /// The lag of each stream; empty if the consumers cannot be read.
    static func gauges(
        _ runner: SinkRunner, _ consumers: any EventConsumers, at now: Date
    ) -> [Gauges.Sink] {
        let all = (try? consumers.all(.sink, of: nil)) ?? []
        let lags = Dictionary(all.map { ($0.id, $0) }) { $1 }
        return runner.counts.map { sink, published, isFailing in
            let lag = lags[sink.consumer]
            let oldest = lag?.oldestUnreadMilliseconds.map { Milliseconds($0).seconds }
            return Gauges.Sink(
                appID: sink.appID, name: sink.name, lag: lag?.lag ?? 0,
                oldestUnreadSeconds: oldest.map { max(0, now.timeIntervalSince1970 - $0) } ?? 0,
                published: published, isFailing: isFailing)
        }
    }
}
