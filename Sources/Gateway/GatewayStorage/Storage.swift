package import CountersignCore
package import Foundation
package import GatewayModel

/// The storage of a gateway: SQLite files or a PostgreSQL database. Code that uses this protocol does not depend on
/// files, tables or SQL.
///
/// Opened stores see changes of other stores and processes within a second. The conformance suite in
/// `CountersignGatewayTesting` tests the engines.
package protocol Storage: Sendable {
    var log: any EventLog { get }
    var analytics: any AnalyticsLog { get }
    var deliveries: any DeliveryLog { get }
    var people: any CustomerRecordStore { get }

    /// The audit log records changes as made by `actor`.
    func openControl(as actor: Operator) throws(GatewayError) -> AppDirectory

    func openSecrets() throws(GatewayError) -> TokenSecrets

    /// Refresh tokens derive from `refreshKey`.
    func openTokenFamilies(refreshKey: [UInt8]) throws(GatewayError) -> TokenFamilyStore

    /// Called once by a running gateway. An instance may have only one event store open at a time.
    func openEvents(_ options: EventStoreOptions) throws(GatewayError) -> any EventStore

    /// `events` is the store of the running gateway, or nil without one. `now` is in milliseconds since 1970.
    func openConsumers(
        with events: (any EventStore)?, now: @escaping @Sendable () -> Int64
    ) -> any EventConsumers

    func openCustomers() throws(GatewayError) -> any CustomerStore

    /// `now` is the clock by which counts expire. `source` dates them.
    func openAnalytics(
        from source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) -> AnalyticsStore

    func openDeliveries() throws(GatewayError) -> DeliveryStore

    /// The progress of streams that an earlier version stored.
    func openEarlierStreams() throws(GatewayError) -> EarlierStreams

    /// The cluster of gateways that share the storage; nil for storage of a single gateway.
    var cluster: (any Cluster)? { get }

    /// Waits until all running gateways have loaded everything committed before; returns false after some seconds.
    func waitForGateways() -> Bool

    /// Makes a backup. Throws `storage` if less than `floorBytes` would stay free. PostgreSQL always throws `invalid`.
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
