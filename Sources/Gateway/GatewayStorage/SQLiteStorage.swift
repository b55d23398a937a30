internal import CountersignSQLite
package import Foundation
package import GatewayModel

/// Storage in a data directory (see `docs/adr/0002-two-databases.md`).
package struct SQLiteStorage: Storage {
    private let folder: DataDirectory
    private let events: SQLiteReaders
    private let counts: SQLiteReaders
    private let attempts: SQLiteReaders
    private let runs = OpenIndexRuns()
    private let now: @Sendable () -> Date

    /// Throws `conflict` for the target of an unfinished copy or restore.
    package init(
        dataDirectory: String, now: @escaping @Sendable () -> Date = { Date() }
    ) throws(GatewayError) {
        try UnfinishedCopy.check(dataDirectory)
        self.init(folder: try DataDirectory(path: dataDirectory), now: now)
    }

    package init(folder: DataDirectory, now: @escaping @Sendable () -> Date = { Date() }) {
        self.folder = folder
        self.now = now
        events = SQLiteReaders(path: folder.path + "/events.sqlite")
        counts = SQLiteReaders(
            path: folder.path + "/" + AnalyticsStore.fileName, busyTimeoutMilliseconds: 1_000)
        attempts = SQLiteReaders(path: folder.path + "/" + DeliveryStore.fileName)
    }

    /// Must be called before any database is opened.
    package static func prepareProcess() { SQLiteConnection.disableMemoryStatistics() }

    private var reader: SQLiteEventLog { SQLiteEventLog(readers: events, runs: runs) }
    package var log: any EventLog { reader }
    package var analytics: any AnalyticsLog { AnalyticsReader(counts) }
    package var deliveries: any DeliveryLog { DeliveryReader(attempts) }
    package var people: any CustomerRecordStore {
        SQLiteCustomerRecords(events: events, analytics: counts, runs: runs)
    }

    package func openControl(as actor: Operator) throws(GatewayError) -> AppDirectory {
        AppDirectory(
            try ControlDatabase.open(try folder.file("control.sqlite"), at: now()), actor: actor, now: now)
    }

    package func openSecrets() throws(GatewayError) -> TokenSecrets {
        try TokenSecrets(dataDirectory: folder, at: now())
    }

    package func openTokenFamilies(refreshKey: [UInt8]) throws(GatewayError) -> TokenFamilyStore {
        try TokenFamilyStore(dataDirectory: folder, refreshKey: refreshKey, at: now())
    }

    package func openEvents(_ options: EventStoreOptions) throws(GatewayError) -> any EventStore {
        let path = try folder.file("events.sqlite")
        do {
            return try SQLiteEventStore(
                path: path, recent: runs.recent, pendingBytes: options.pendingBytes,
                diskFloorBytes: options.diskFloorBytes,
                observer: options.observer, now: now, retention: options.retention)
        } catch {
            throw error as? GatewayError
                ?? GatewayError(.storage, "cannot open the events in \(folder.path): \(error)")
        }
    }

    package func openConsumers(
        with events: (any EventStore)?, now: @escaping @Sendable () -> Int64
    ) -> any EventConsumers {
        let store = events as? SQLiteEventStore
        return StoredConsumers(
            SQLiteConsumerEngine(
                reader: reader, writer: store.map { .store($0) } ?? .file(self.events.path), now: now))
    }

    package func openCustomers() throws(GatewayError) -> any CustomerStore {
        StoredCustomers(path: try folder.file("events.sqlite"))
    }

    package func openAnalytics(
        from source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) -> AnalyticsStore {
        try AnalyticsStore(
            path: try folder.file(AnalyticsStore.fileName), source: source, now: now, report: report)
    }

    package func openDeliveries() throws(GatewayError) -> DeliveryStore {
        try DeliveryStore(path: try folder.file(DeliveryStore.fileName), at: now())
    }

    package func openEarlierStreams() throws(GatewayError) -> EarlierStreams {
        try EarlierStreams(path: folder.path + "/" + EarlierStreams.fileName)
    }

    package func waitForGateways() -> Bool { ChangeSignal.waitForGateway(folder.path) }

    package func backUp(in folder: String, floorBytes: Int) throws(GatewayError) -> Backup {
        try Backup.create(of: self.folder.path, in: folder, floorBytes: floorBytes)
    }
}
