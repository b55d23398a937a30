internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayObservability
package import GatewayStorage

package struct SinkDependencies: Sendable {
    package var events: any EventLog
    package var arrivals: EventArrivals
    package var consumers: any EventConsumers
    package var store: SinkStateStore
    package var log: GatewayLog
    /// Identifies this gateway as the holder of leases.
    package var holder: String
    package var now: @Sendable () -> Date
    /// Milliseconds of a monotonic clock.
    package var clock: @Sendable () -> Int64
    package var random: @Sendable () -> Double
    package var connect: @Sendable (EventSink) throws(SinkError) -> any StreamConnection

    package init(
        events: any EventLog, arrivals: EventArrivals, consumers: any EventConsumers, store: SinkStateStore,
        log: GatewayLog, holder: String = UUIDv7.make(), now: @escaping @Sendable () -> Date,
        clock: @escaping @Sendable () -> Int64 = { Int64(DispatchTime.now().uptimeNanoseconds / 1_000_000) },
        random: @escaping @Sendable () -> Double = { .random(in: 0...1) },
        connect: @escaping @Sendable (EventSink) throws(SinkError) -> any StreamConnection
    ) {
        self.events = events
        self.arrivals = arrivals
        self.consumers = consumers
        self.store = store
        self.log = log
        self.holder = holder
        self.now = now
        self.clock = clock
        self.random = random
        self.connect = connect
    }

    var milliseconds: Int64 { Milliseconds(now()).count }
}
