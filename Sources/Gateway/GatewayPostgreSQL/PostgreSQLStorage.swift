internal import CountersignCore
package import Foundation
package import GatewayModel
package import GatewayStorage

/// Storage in a PostgreSQL database, which any number of gateways may share; see `docs/operating/several-gateways.md`.
package struct PostgreSQLStorage: Storage {
    /// The size of the pool. Event writers, the deletion of expired data and the cluster have other connections.
    private static let connections = 16

    private let tokenKey: @Sendable () throws -> TokenKeySeal
    private let pool: PostgreSQLPool
    private let gateways: PostgreSQLCluster
    private let takesGivenTime: Bool
    private let now: @Sendable () -> Date

    /// Migrates the database. The first use of a secret creates the token key file if the database has no keys; all
    /// gateways need the same file. Throws `storage`, `invalid` for a malformed address, `dataDirectory` for an
    /// unreadable password file, and `conflict` for an unknown schema or an unfinished copy.
    package init(
        _ address: DatabaseAddress, now: @escaping @Sendable () -> Date = { Date() }
    ) throws(GatewayError) {
        let settings = try PostgreSQLSettings(address)
        let tokenKeyFile = address.tokenKeyFile
        let connection = try GatewayError.storing {
            let connection = try PostgreSQLSchema.migrate(settings)
            try CopyMarker.check(connection)
            return connection
        }
        self.now = now
        let takesGivenTime = address.takesGivenTime
        self.takesGivenTime = takesGivenTime
        let tokenKey = Self.tokenKey(tokenKeyFile, settings)
        self.tokenKey = tokenKey
        pool = PostgreSQLPool(settings, connections: Self.connections, tokenKey: tokenKey, first: connection)
        gateways = PostgreSQLCluster(
            settings, takesGivenTime: takesGivenTime, tokenKey: { try TokenKeySeal(file: tokenKeyFile) })
    }

    private func database(_ kind: DataKind) -> PostgreSQLDatabase { PostgreSQLDatabase(pool, kind) }

    package var log: any EventLog { PostgreSQLEventLog(pool: pool, now: now) }
    package var analytics: any AnalyticsLog { AnalyticsReader(database(.analytics)) }
    package var deliveries: any DeliveryLog { DeliveryReader(database(.deliveries)) }
    package var people: any CustomerRecordStore { PostgreSQLCustomerRecords(pool: pool) }

    package func openControl(as actor: Operator) throws(GatewayError) -> AppDirectory {
        AppDirectory(database(.control), actor: actor, now: now)
    }

    package func openSecrets() throws(GatewayError) -> TokenSecrets {
        TokenSecrets(database(.secrets), seal: try GatewayError.storing { try tokenKey() }.seal)
    }

    /// Reads the key file once, on first use.
    private static func tokenKey(
        _ file: String, _ settings: PostgreSQLSettings
    ) -> @Sendable () throws -> TokenKeySeal {
        let kept = Lock<TokenKeySeal?>(nil)
        return {
            try kept.withLock { kept in
                if let kept { return kept }
                // A separate pool, because the caller may hold the last free connection of the main pool.
                let secrets = PostgreSQLDatabase(PostgreSQLPool(settings, connections: 1), .secrets)
                let seal = try tokenKeySeal(file, for: secrets)
                // Fails early if another gateway has encrypted the keys with another file.
                _ = try TokenSecrets(secrets, seal: seal.seal).refreshKey()
                kept = seal
                return seal
            }
        }
    }

    /// Reads the key file, or creates it if the database has no keys. Throws `conflict` if only the file is missing.
    static func tokenKeySeal(
        _ tokenKeyFile: String, for secrets: any SQLReader
    ) throws(GatewayError) -> TokenKeySeal {
        if let seal = try TokenKeySeal(file: tokenKeyFile) { return seal }
        let isKept = try secrets.read { connection in
            try connection.first("SELECT 1 FROM refresh_key UNION ALL SELECT 1 FROM signing_key") { _ in
                true
            } == true
        }
        guard !isKept else {
            // Another gateway on this machine may have created the file and then the keys since the first read.
            if let seal = try TokenKeySeal(file: tokenKeyFile) { return seal }
            throw GatewayError(
                .conflict,
                "the database has token keys, but \(tokenKeyFile) does not exist; copy the file from the gateway that "
                    + "made it")
        }
        return try TokenKeySeal(making: tokenKeyFile)
    }

    package func openTokenFamilies(refreshKey: [UInt8]) throws(GatewayError) -> TokenFamilyStore {
        let time: @Sendable (any SQLConnection) throws -> Int64 = { connection in
            try connection.first("SELECT \(ClusterTables.now)") { $0.int64(0) } ?? 0
        }
        return TokenFamilyStore(
            database(.tokenFamilies), refreshKey: refreshKey, databaseTime: takesGivenTime ? nil : time)
    }

    package func openEvents(_ options: EventStoreOptions) throws(GatewayError) -> any EventStore {
        try GatewayError.storing { try PostgreSQLEventStore(pool, options) }
    }

    package func openConsumers(
        with events: (any EventStore)?, now: @escaping @Sendable () -> Int64
    ) -> any EventConsumers {
        StoredConsumers(
            PostgreSQLConsumerEngine(
                pool: pool, arrivals: events?.arrivals, clock: takesGivenTime ? .given(now) : .database))
    }

    package func openCustomers() throws(GatewayError) -> any CustomerStore {
        StoredCustomers(database(.control))
    }

    package func openAnalytics(
        from source: any AnalyticsSource, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void
    ) throws(GatewayError) -> AnalyticsStore {
        let counts = database(.analytics)
        return try AnalyticsStore(
            open: { () throws(GatewayError) -> any SQLDatabase in counts }, source: source, now: now,
            report: report)
    }

    package func openDeliveries() throws(GatewayError) -> DeliveryStore {
        DeliveryStore(database(.deliveries))
    }

    package func openEarlierStreams() throws(GatewayError) -> EarlierStreams {
        EarlierStreams(database(.streams))
    }

    package var cluster: (any Cluster)? { gateways }

    package func waitForGateways() -> Bool {
        gateways.waitForGateways()
        // A gateway that has not loaded a change by now has stopped accepting requests.
        return true
    }

    package func backUp(in folder: String, floorBytes: Int) throws(GatewayError) -> Backup {
        throw GatewayError(
            .invalid,
            "a database is copied by its own tools, such as pg_dump or pg_basebackup, together with the file of the token "
                + "key; see docs/operating/several-gateways.md")
    }
}
