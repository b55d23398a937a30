internal import CountersignCore
package import GatewayModel

package struct ClusterGauges: Sendable {
    package struct Heartbeat: Sendable {
        let ageSeconds: Double
        /// The offset of the gateway's clock from the database's.
        let clockOffsetSeconds: Double
        let readerLagSeconds: Double

        package init(ageSeconds: Double, clockOffsetSeconds: Double, readerLagSeconds: Double) {
            self.ageSeconds = ageSeconds
            self.clockOffsetSeconds = clockOffsetSeconds
            self.readerLagSeconds = readerLagSeconds
        }
    }

    let gateways: Int
    /// Nil before the first heartbeat.
    let beat: Heartbeat?
    let database: DatabaseLoad

    package init(gateways: Int, beat: Heartbeat?, database: DatabaseLoad) {
        self.gateways = gateways
        self.beat = beat
        self.database = database
    }

    static func write(_ gauges: ClusterGauges?, to text: inout some MetricWriter) {
        for metric in metrics {
            text.begin(metric.name, metric.kind, help: metric.help)
            if let value = gauges.flatMap(metric.value) { text.sample(value) }
        }
        text.begin(
            "countersign_database_connections", .gauge,
            help: "Connections to the database that requests share, by state.")
        if let database = gauges?.database {
            text.sample([("state", "in_use")], Double(database.connectionsInUse))
            text.sample([("state", "idle")], Double(database.connectionsIdle))
        }
        text.begin(
            "countersign_database_errors_total", .counter,
            help: "Errors of the database and of connections to it, by class of SQLSTATE.")
        for (name, count) in (gauges?.database.errors ?? [:]).sorted(by: { $0.key < $1.key }) {
            text.sample([("class", name)], Double(count))
        }
    }

    private static let metrics:
        [(
            name: String, kind: MetricKind, help: String,
            value: @Sendable (ClusterGauges) -> Double?
        )] = [
            (
                "countersign_cluster_gateways", .gauge,
                "Live gateways, as of this one's last read of the database.", { Double($0.gateways) }
            ),
            (
                "countersign_cluster_heartbeat_age_seconds", .gauge,
                "Age of the apps, keys and settings that this gateway last read from the database; from 5 s on it rejects requests.",
                { $0.beat?.ageSeconds }
            ),
            (
                "countersign_cluster_clock_offset_seconds", .gauge,
                "How far this gateway's clock is ahead of the database's.", { $0.beat?.clockOffsetSeconds }
            ),
            (
                "countersign_cluster_reader_lag_seconds", .gauge,
                "Age of the transaction that readers of events wait for.", { $0.beat?.readerLagSeconds }
            ),
            (
                "countersign_database_connection_limit", .gauge,
                "The most connections to the database that requests may use at once.",
                { Double($0.database.connectionLimit) }
            ),
            (
                "countersign_database_write_retries_total", .counter,
                "Commits of events that were retried because they conflicted with other transactions.",
                { Double($0.database.writeRetries) }
            ),
            (
                "countersign_database_event_partitions", .gauge,
                "Partitions of the table of events.", { Double($0.database.eventPartitions) }
            ),
        ]
}
