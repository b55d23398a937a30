internal import CountersignCore
package import GatewayModel

/// Timeouts and thresholds of a cluster.
package enum ClusterRules {
    /// How long a gateway serves clients after its last successful read of others' changes began.
    package static let freshMilliseconds: Int64 = 5_000
    /// The time from a gateway's last heartbeat until it serves no clients, with a second to finish earlier requests.
    package static let deadMilliseconds: Int64 = 6_000
    /// The maximum difference between the clocks of a gateway and the database without a warning.
    package static let clockMilliseconds: Int64 = 1_000
    /// The maximum time that a transaction may delay readers of events without a warning.
    package static let readerLagMilliseconds: Int64 = 10_000
}

/// Work for one gateway of a cluster. Two gateways may overlap briefly.
package enum ClusterDuty: Int64, CaseIterable, Sendable {
    case enforcementAlerts = 1
    case webhooks
    case deletedApps
    case eventFiles
    case streams
}

package struct GatewayIdentity: Sendable, Equatable {
    /// A new id for each start of a gateway.
    package let id: String
    package let name: String
    package let version: String
    /// Milliseconds since 1970.
    package let startedMilliseconds: Int64

    package init(id: String, name: String, version: String, startedMilliseconds: Int64) {
        self.id = id
        self.name = name
        self.version = version
        self.startedMilliseconds = startedMilliseconds
    }
}

package struct ClusterStatus: Sendable {
    /// A gateway's state at its last heartbeat.
    package struct Gateway: Sendable {
        package let identity: GatewayIdentity
        /// The URL for clients; nil before the gateway listens.
        package let url: String?
        package let adminURL: String?
        /// Time of the last heartbeat by the database's clock, in milliseconds since 1970.
        package let seenMilliseconds: Int64
        /// Whether the last heartbeat is recent, so that other gateways wait until this gateway has read a change.
        package let isLive: Bool
        package let clockOffsetMilliseconds: Int64
        /// The number of the last change that the gateway has read.
        package let generation: Int64
        package let readerLagMilliseconds: Int64
        package let duties: [ClusterDuty]
        /// The traffic of the minute before the last heartbeat.
        package let lastMinute: GatewayTraffic

        package init(
            identity: GatewayIdentity, url: String?, adminURL: String?, seenMilliseconds: Int64, isLive: Bool,
            clockOffsetMilliseconds: Int64, generation: Int64, readerLagMilliseconds: Int64,
            duties: [ClusterDuty], lastMinute: GatewayTraffic
        ) {
            self.identity = identity
            self.url = url
            self.adminURL = adminURL
            self.seenMilliseconds = seenMilliseconds
            self.isLive = isLive
            self.clockOffsetMilliseconds = clockOffsetMilliseconds
            self.generation = generation
            self.readerLagMilliseconds = readerLagMilliseconds
            self.duties = duties
            self.lastMinute = lastMinute
        }
    }

    package struct Partition: Sendable {
        /// Such as `event_20780`, with the days since 1970.
        package let name: String
        /// The start of the day, in milliseconds since 1970; nil for the default partition.
        package let dayMilliseconds: Int64?
        /// PostgreSQL's estimated number of events; nil before a `VACUUM` or `ANALYZE`.
        package let rows: Int64?
        /// The size on disk, including indexes.
        package let bytes: Int64

        package init(name: String, dayMilliseconds: Int64?, rows: Int64?, bytes: Int64) {
            self.name = name
            self.dayMilliseconds = dayMilliseconds
            self.rows = rows
            self.bytes = bytes
        }
    }

    /// The oldest first.
    package let gateways: [Gateway]
    /// The number of the last change.
    package let generation: Int64
    /// The time of the database's clock, in milliseconds since 1970.
    package let nowMilliseconds: Int64
    package let schemaVersion: Int
    package let serverVersion: String
    /// The oldest first.
    package let partitions: [Partition]

    package init(
        gateways: [Gateway], generation: Int64, nowMilliseconds: Int64, schemaVersion: Int,
        serverVersion: String, partitions: [Partition]
    ) {
        self.gateways = gateways
        self.generation = generation
        self.nowMilliseconds = nowMilliseconds
        self.schemaVersion = schemaVersion
        self.serverVersion = serverVersion
        self.partitions = partitions
    }

    package var readerLagMilliseconds: Int64 {
        gateways.filter(\.isLive).map(\.readerLagMilliseconds).max() ?? 0
    }

    package var lastMinute: GatewayTraffic {
        gateways.filter(\.isLive).map(\.lastMinute).reduce(into: GatewayTraffic()) { sum, each in
            sum.accepted += each.accepted
            sum.rejected += each.rejected
            sum.events += each.events
        }
    }
}

extension ClusterStatus {
    package struct Warning: Sendable, Equatable {
        /// Identifies the kind of warning, such as `gateway_lost`, for programs.
        package let code: String
        package let text: String
    }

    package var warnings: [Warning] {
        var found: [Warning] = []
        for gateway in gateways {
            let name = gateway.url ?? gateway.identity.name
            if !gateway.isLive {
                let seconds = (nowMilliseconds - gateway.seenMilliseconds) / 1_000
                found.append(
                    Warning(code: "gateway_lost", text: "\(name) has not been heard from for \(seconds) s."))
            } else if abs(gateway.clockOffsetMilliseconds) > ClusterRules.clockMilliseconds {
                let text =
                    "The clock of \(name) differs from the database's by \(gateway.clockOffsetMilliseconds) ms."
                found.append(Warning(code: "clock", text: text))
            }
        }
        if readerLagMilliseconds > ClusterRules.readerLagMilliseconds {
            let text =
                "Readers of events wait for a transaction that has been open for \(readerLagMilliseconds / 1_000) s."
            found.append(Warning(code: "reader_lag", text: text))
        }
        if BytewiseSet(gateways.filter(\.isLive).map(\.identity.version)).count > 1 {
            found.append(Warning(code: "versions", text: "Gateways of different versions are running."))
        }
        return found
    }
}

extension ClusterStatus.Gateway {
    package var dutyNames: [String] { duties.map(\.name) }
}

extension ClusterDuty {
    package var name: String {
        switch self {
        case .enforcementAlerts: "enforcement_alerts"
        case .webhooks: "webhooks"
        case .deletedApps: "deleted_apps"
        case .eventFiles: "event_files"
        case .streams: "streams"
        }
    }
}
