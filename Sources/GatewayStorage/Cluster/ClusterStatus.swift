internal import CountersignCore
package import GatewayModel

/// How long things in a cluster hold.
package enum ClusterRules {
    /// How long a gateway accepts requests after it began to read what others have changed.
    package static let freshMilliseconds: Int64 = 5_000
    /// When others take it that a gateway accepts nothing any more: what it was judging at the end is answered by then.
    package static let deadMilliseconds: Int64 = 6_000
    /// How far a gateway's clock may be from the database's.
    package static let clockMilliseconds: Int64 = 1_000
    /// How long a transaction may keep readers of events waiting before somebody is told.
    package static let readerLagMilliseconds: Int64 = 10_000
}

/// What only one gateway of a cluster does at a time.
package enum ClusterDuty: Int64, CaseIterable, Sendable {
    /// Alerts that many requests are refused.
    case enforcementAlerts = 1
    /// Deliveries to webhooks.
    case webhooks
    /// Erasing apps that were deleted.
    case deletedApps
    /// Files of events.
    case eventFiles
}

/// Who a gateway is to the others.
package struct GatewayIdentity: Sendable, Equatable {
    /// New with each start.
    package let id: String
    /// The machine's name.
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

/// How the gateways of one database are.
package struct ClusterStatus: Sendable {
    /// A gateway as it was when it last showed that it lives.
    package struct Gateway: Sendable {
        package let identity: GatewayIdentity
        /// Where others find it; nil until it listens.
        package let url: String?
        /// Where operators find it; nil until it listens.
        package let adminURL: String?
        /// Milliseconds since 1970 by the database's clock.
        package let seenMilliseconds: Int64
        /// True while others wait for it, and count it.
        package let isLive: Bool
        /// How far its clock is ahead of the database's, in milliseconds.
        package let clockOffsetMilliseconds: Int64
        /// The last change that it has read.
        package let generation: Int64
        /// How old the transaction is that its readers of events wait for, in milliseconds; 0 when none is open.
        package let readerLagMilliseconds: Int64
        /// What it alone does now.
        package let duties: [ClusterDuty]
        /// The minute before it last showed that it lives.
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

    /// The events of one day.
    package struct Partition: Sendable {
        /// Such as `event_20780`, by the days since 1970.
        package let name: String
        /// When its day begins, in milliseconds since 1970; nil for what has come before its day's partition was made.
        package let dayMilliseconds: Int64?
        /// Events, as the server estimates them; nil before it has looked.
        package let rows: Int64?
        /// On the disk, with indexes.
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
    /// The last change.
    package let generation: Int64
    /// By the database's clock, in milliseconds since 1970.
    package let nowMilliseconds: Int64
    /// The schema's version.
    package let schemaVersion: Int
    /// The server's version, such as `15.14`.
    package let serverVersion: String
    /// Secrets that are not sealed in the database.
    package let openSecrets: Int
    /// The oldest first.
    package let partitions: [Partition]

    package init(
        gateways: [Gateway], generation: Int64, nowMilliseconds: Int64, schemaVersion: Int,
        serverVersion: String, openSecrets: Int, partitions: [Partition]
    ) {
        self.gateways = gateways
        self.generation = generation
        self.nowMilliseconds = nowMilliseconds
        self.schemaVersion = schemaVersion
        self.serverVersion = serverVersion
        self.openSecrets = openSecrets
        self.partitions = partitions
    }

    /// How old the transaction is that readers of events wait for; 0 when none is open.
    package var readerLagMilliseconds: Int64 {
        gateways.filter(\.isLive).map(\.readerLagMilliseconds).max() ?? 0
    }

    /// What all gateways that live have judged within a minute.
    package var lastMinute: GatewayTraffic {
        gateways.filter(\.isLive).map(\.lastMinute).reduce(into: GatewayTraffic()) { sum, each in
            sum.accepted += each.accepted
            sum.rejected += each.rejected
            sum.events += each.events
        }
    }
}

extension ClusterStatus {
    /// Something that an operator should look at.
    package struct Warning: Sendable, Equatable {
        /// A stable word.
        package let code: String
        package let text: String
    }

    /// What is wrong with the cluster; empty when nothing is.
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
        if openSecrets > 0 {
            let text =
                "\(openSecrets) secrets in the database are not sealed yet; they will be within a minute of the end of "
                + "the last gateway of an older version."
            found.append(Warning(code: "open_secrets", text: text))
        }
        return found
    }
}

extension ClusterStatus.Gateway {
    /// What it alone does now, in words.
    package var dutyNames: [String] { duties.map(\.name) }
}

extension ClusterDuty {
    package var name: String {
        switch self {
        case .enforcementAlerts: "enforcement_alerts"
        case .webhooks: "webhooks"
        case .deletedApps: "deleted_apps"
        case .eventFiles: "event_files"
        }
    }
}
