internal import CountersignCore
package import GatewayModel

package struct ClusterGauges: Sendable {
    /// `clockOffsetSeconds` is the time by which the gateway's clock is ahead of the database's clock.
    package typealias Heartbeat = (ageSeconds: Double, clockOffsetSeconds: Double, readerLagSeconds: Double)

    let gateways: Int
    /// Nil before the first heartbeat.
    let beat: Heartbeat?
    let database: DatabaseLoad

    package init(gateways: Int, beat: Heartbeat?, database: DatabaseLoad) {
        self.gateways = gateways
        self.beat = beat
        self.database = database
    }

    /// With nil, the metrics have no samples.
    static func families(_ gauges: ClusterGauges?) -> [MetricFamily] {
        let database = gauges?.database
        return [
            MetricFamily(
                "countersign_cluster_gateways", .gauge,
                "Live gateways at this one's last read of the database.",
                gauges.map { Double($0.gateways) }),
            MetricFamily(
                "countersign_cluster_heartbeat_age_seconds", .gauge,
                "Age of the apps, keys and settings that this gateway last read from the database; from 5 s on it rejects requests.",
                gauges?.beat?.ageSeconds),
            MetricFamily(
                "countersign_cluster_clock_offset_seconds", .gauge,
                "How far this gateway's clock is ahead of the database's.", gauges?.beat?.clockOffsetSeconds),
            MetricFamily(
                "countersign_cluster_reader_lag_seconds", .gauge,
                "Age of the transaction that readers of events wait for.", gauges?.beat?.readerLagSeconds),
            MetricFamily(
                "countersign_database_connection_limit", .gauge,
                "The most connections to the database that requests may use at once.",
                database.map { Double($0.connectionLimit) }),
            MetricFamily(
                "countersign_database_write_retries_total", .counter,
                "Commits of events that were retried because they conflicted with other transactions.",
                database.map { Double($0.writeRetries) }),
            MetricFamily(
                "countersign_database_event_partitions", .gauge, "Partitions of the table of events.",
                database.map { Double($0.eventPartitions) }),
            MetricFamily(
                "countersign_database_connections", .gauge,
                "Connections to the database that requests share, by state.",
                database.map { load in
                    [
                        ([("state", "in_use")], Double(load.connectionsInUse)),
                        ([("state", "idle")], Double(load.connectionsIdle)),
                    ]
                } ?? []),
            MetricFamily(
                "countersign_database_errors_total", .counter,
                "Errors of the database and of connections to it, by class of SQLSTATE.",
                (database?.errors ?? [:]).sorted(by: { $0.key < $1.key }).map { name, count in
                    ([("class", name)], Double(count))
                }),
        ]
    }
}
