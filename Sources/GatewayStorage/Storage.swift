package import CountersignCore
package import Foundation
package import GatewayModel

/// Everything that a gateway keeps, by what it is about.
///
/// Whatever lies above storage gets at data through this alone: it knows no file, no table and no SQL. What another engine
/// must do is said by the protocols, and held by the conformance suite in `CountersignGatewayTesting`.
///
/// What is only read may be read whether or not a gateway runs. What is opened sees the changes of everything else that was
/// opened, of this process and of others, within a second.
package protocol Storage: Sendable {
    /// Stored events, read.
    var log: any EventLog { get }
    /// Counted verdicts, read.
    var analytics: any AnalyticsLog { get }
    /// What became of deliveries to webhooks, read.
    var deliveries: any DeliveryLog { get }
    /// How far sinks have come, read.
    var sinks: any SinkStates { get }
    /// What is kept of one person, over all of it.
    var people: any CustomerRecordStore { get }

    /// Apps, operators and the audit log, changed in the name of `actor`.
    func openControl(as actor: Operator) throws(GatewayError) -> AppDirectory

    /// The keys of the token service.
    func openSecrets() throws(GatewayError) -> TokenSecrets

    /// Sessions of the token service, whose refresh tokens are derived with `refreshKey`.
    func openSessions(refreshKey: [UInt8]) throws(GatewayError) -> SessionStore

    /// The events of the gateway that runs: one at a time.
    func openEvents(_ options: EventStoreOptions) throws(GatewayError) -> any EventStore

    /// The consumers of events; `events` is the store of the gateway that runs, nil where none does. `now` is
    /// milliseconds since 1970.
    func openConsumers(
        with events: (any EventStore)?, now: @escaping @Sendable () -> Int64
    ) -> any EventConsumers

    /// The customers of the gateway that runs.
    func openCustomers() throws(GatewayError) -> any CustomerStore

    /// What keeps the counts of the gateway that runs, for as long as `now` says.
    func openAnalytics(
        from source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) -> AnalyticsStore

    /// What keeps the deliveries of the gateway that runs.
    func openDeliveries() throws(GatewayError) -> DeliveryStore

    /// What keeps how far sinks have come, and which relay has which.
    func openSinks() throws(GatewayError) -> SinkStateStore

    /// The gateways that share it; nil where one has it alone.
    var cluster: (any Cluster)? { get }

    /// Waits until all running gateways have loaded everything committed before this call. Returns false if a gateway
    /// has not within some seconds.
    func settle() -> Bool

    /// Copies all data into a new folder in `folder`. Fails rather than leave less than `floorBytes` free. Throws
    /// `invalid` for PostgreSQL, whose own tools make backups.
    func backUp(in folder: String, floorBytes: Int) throws(GatewayError) -> Backup
}

extension Storage {
    package var cluster: (any Cluster)? { nil }
}

/// What the events of a running gateway are kept by.
package struct EventStoreOptions: Sendable {
    /// The most bytes that may wait for the disk.
    package var pendingBytes: Int
    /// Nothing is stored while less of the disk is free.
    package var diskFloorBytes: Int
    package var observer: (any GatewayObserver)?
    /// How long each app's events are kept, by the app's id. A store asks when it is opened, before it answers its first
    /// batch, and every minute from then on.
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
