internal import CountersignCore
internal import CountersignSQLite
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// The gateways of a database, identified by their rows in the table `gateway`.
final class PostgreSQLCluster: Cluster {
    private static let longestPause = 0.1

    private let settings: PostgreSQLSettings
    private let takesGivenTime: Bool
    private let tokenKey: @Sendable () throws -> TokenKeySeal?
    private let connection = Lock(Connection())

    // `Lock` restricts the connection to one thread at a time.
    private struct Connection: @unchecked Sendable {
        var opened: PostgreSQLConnection?
    }

    /// `takesGivenTime`, for tests, ignores differences between the clocks of the gateways and the database.
    init(
        _ settings: PostgreSQLSettings, takesGivenTime: Bool = false,
        tokenKey: @escaping @Sendable () throws -> TokenKeySeal? = { nil }
    ) {
        self.takesGivenTime = takesGivenTime
        self.tokenKey = tokenKey
        var settings = settings
        settings.connectSeconds = 2
        settings.statementMilliseconds = 3_000
        self.settings = settings
    }

    func makeMember(
        _ identity: GatewayIdentity, now: @escaping @Sendable () -> Int64
    ) -> any ClusterMember {
        PostgreSQLMember(identity, settings, takesGivenTime: takesGivenTime, now: now)
    }

    func makeChannel(id: String) -> any ClusterChannel { PostgreSQLChannel(id, settings) }

    /// Waits until the rows of all live gateways have the new generation, at most ``ClusterRules/deadMilliseconds``.
    /// After this time, a gateway without the change accepts no requests, even if the database is unreachable.
    func waitForGateways() {
        let start = Uptime.milliseconds
        var generation: Int64?
        var pause = 0.005
        while Uptime.milliseconds - start < ClusterRules.deadMilliseconds {
            do {
                if generation == nil { generation = try incrementGeneration() }
                if try isLoaded(generation ?? 0) { return }
            } catch {
                connection.withLock { $0.opened = nil }
            }
            Thread.sleep(forTimeInterval: pause)
            pause = min(2 * pause, Self.longestPause)
        }
    }

    /// Increments the generation and notifies all gateways. Returns the new generation, which they must load.
    private func incrementGeneration() throws -> Int64 {
        try use { connection in
            try connection.execute(
                """
                UPDATE generation SET number = number + 1 WHERE kind = '\(ClusterTables.kind)';
                NOTIFY countersign_cluster
                """)
            return try connection.first("SELECT \(ClusterTables.generation)") { $0.int64(0) } ?? 0
        }
    }

    private func isLoaded(_ generation: Int64) throws -> Bool {
        try use { connection in
            try connection.first(
                "SELECT 1 FROM gateway WHERE generation < ?1 AND seen_ms > \(ClusterTables.now) - ?2 LIMIT 1",
                .integer(generation), .integer(ClusterRules.deadMilliseconds)
            ) { _ in true } == nil
        }
    }

    func status() throws(GatewayError) -> ClusterStatus {
        do {
            return try use { try Self.status($0) }
        } catch {
            connection.withLock { $0.opened = nil }
            throw GatewayError(.storage, "\(error)")
        }
    }

    func change<Value>(
        _ names: [ClusterNote.Name], _ body: (inout [ClusterNote.Name: JSONValue]) -> Value
    ) throws(GatewayError) -> Value {
        do {
            return try use { try ClusterNotes(connection: $0, tokenKey: tokenKey).change(names, body) }
        } catch let error as GatewayError {
            throw error
        } catch {
            throw GatewayError(.storage, "\(error)")
        }
    }

    private static func status(_ connection: PostgreSQLConnection) throws -> ClusterStatus {
        let gateways = try connection.all(
            """
            SELECT id, name, version, started_ms, url, admin_url, seen_ms, seen_ms > \(ClusterTables.now) - ?1, clock_offset_ms,
                generation, duties, reader_lag_ms, accepted, rejected, events
            FROM gateway ORDER BY started_ms, id
            """, .integer(ClusterRules.deadMilliseconds)
        ) { row in
            let identity = GatewayIdentity(
                id: row.text(0), name: row.text(1), version: row.text(2), startedMilliseconds: row.int64(3))
            let duties = row.text(10).split(separator: ",").compactMap { word in
                Int64(word).flatMap { ClusterDuty(rawValue: $0) }
            }
            return ClusterStatus.Gateway(
                identity: identity, url: row.optionalText(4), adminURL: row.optionalText(5),
                seenMilliseconds: row.int64(6), isLive: row.int(7) != 0,
                clockOffsetMilliseconds: row.int64(8), generation: row.int64(9),
                readerLagMilliseconds: row.int64(11), duties: duties,
                lastMinute: GatewayTraffic(
                    accepted: row.int(12), rejected: row.int(13), events: row.int(14)))
        }
        let partitions = try connection.all(
            """
            SELECT child.relname, pg_total_relation_size(child.oid), child.reltuples::bigint FROM pg_inherits
            JOIN pg_class AS child ON child.oid = inhrelid
            WHERE inhparent = 'event'::regclass ORDER BY length(child.relname), child.relname
            """
        ) { row in
            let name = row.text(0)
            // The estimate is -1 before the first `ANALYZE`.
            return ClusterStatus.Partition(
                name: name, dayMilliseconds: EventPartitions.day(of: name).map { Int64($0) * 86_400_000 },
                rows: row.int64(2) < 0 ? nil : row.int64(2), bytes: row.int64(1))
        }
        let about = try connection.first(
            """
            SELECT \(ClusterTables.generation), \(ClusterTables.now), (SELECT max(version) FROM schema_version),
                current_setting('server_version')
            """
        ) { ($0.int64(0), $0.int64(1), $0.int(2), $0.text(3)) }
        guard let (generation, time, schema, server) = about else {
            throw GatewayError(.storage, "the database returned no answer")
        }
        return ClusterStatus(
            gateways: gateways, generation: generation, nowMilliseconds: time,
            schemaVersion: schema, serverVersion: server, partitions: partitions)
    }

    private func use<Value>(_ body: (PostgreSQLConnection) throws -> Value) throws -> Value {
        try connection.withLock { connection in
            if connection.opened?.isSound != true { connection.opened = nil }
            let opened = try connection.opened ?? PostgreSQLConnection(settings)
            connection.opened = opened
            return try body(opened)
        }
    }
}
