package import CountersignCore
package import Foundation
package import GatewayModel

/// The storage of a gateway: SQLite files or a PostgreSQL database.
///
/// Code above this layer has no knowledge of files, tables and SQL. The protocols define the requirements for
/// an engine, and the conformance suite in `CountersignGatewayTesting` tests them.
///
/// The properties read data whether or not a gateway runs. Opened stores see changes of other stores and
/// processes within a second.
package protocol Storage: Sendable {
    /// Reads stored events.
    var log: any EventLog { get }
    /// Reads verdict counts.
    var analytics: any AnalyticsLog { get }
    /// Reads webhook delivery attempts.
    var deliveries: any DeliveryLog { get }
    /// Exports and deletes the data of one person across all stores.
    var people: any CustomerRecordStore { get }

    /// The apps, operators and audit log. Changes are attributed to `actor`.
    func openControl(as actor: Operator) throws(GatewayError) -> AppDirectory

    /// The keys of the token service.
    func openSecrets() throws(GatewayError) -> TokenSecrets

    /// The sessions of the token service. `refreshKey` is the key from which refresh tokens derive.
    func openSessions(refreshKey: [UInt8]) throws(GatewayError) -> SessionStore

    /// The event store of the running gateway. Only one may be open at a time.
    func openEvents(_ options: EventStoreOptions) throws(GatewayError) -> any EventStore

    /// The consumers of events. `events` is the store of the running gateway, or nil without one. `now` is in
    /// milliseconds since 1970.
    func openConsumers(
        with events: (any EventStore)?, now: @escaping @Sendable () -> Int64
    ) -> any EventConsumers

    func openCustomers() throws(GatewayError) -> any CustomerStore

    /// Stores the counts of the running gateway. `now` also determines their retention.
    func openAnalytics(
        from source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) -> AnalyticsStore

    /// Stores the deliveries of the running gateway.
    func openDeliveries() throws(GatewayError) -> DeliveryStore

    /// The progress of streams that an earlier version stored.
    func openEarlierStreams() throws(GatewayError) -> EarlierStreams

    /// The cluster of gateways that share the storage; nil for storage of a single gateway.
    var cluster: (any Cluster)? { get }

    /// Waits until all running gateways have loaded everything committed before this call. Returns false if a
    /// gateway has not done so within some seconds.
    func waitForGateways() -> Bool

    /// Backs up all data into a new folder in `folder`, unless that would leave less than `floorBytes` free.
    /// Throws `invalid` for PostgreSQL, which has its own backup tools.
    func backUp(in folder: String, floorBytes: Int) throws(GatewayError) -> Backup
}

extension Storage {
    package var cluster: (any Cluster)? { nil }
}

package struct EventStoreOptions: Sendable {
    /// The maximum bytes of events that wait to be stored.
    package var pendingBytes: Int
    /// Free bytes on the disk below which nothing is stored.
    package var diskFloorBytes: Int
    package var observer: (any GatewayObserver)?
    /// Returns the retention rules by app id. Called when the store opens, before it acknowledges the first
    /// batch, and then every minute.
    package var retention: @Sendable () -> BytewiseDictionary<AppRules>

    package init(
        pendingBytes: Int, diskFloorBytes: Int = 0, observer: (any GatewayObserver)? = nil,
        retention: @escaping @Sendable () -> BytewiseDictionary<AppRules> = { [:] }
    ) {
        self.pendingBytes = pendingBytes
        self.diskFloorBytes = diskFloorBytes
        self.observer = observer
        self.retention = retention
    }
}
