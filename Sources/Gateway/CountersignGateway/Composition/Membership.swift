internal import CountersignCore
internal import Foundation
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// A gateway's membership in a cluster. Without a cluster, the gateway is always current and does all work.
struct Membership: Sendable {
    private let member: (any ClusterMember)?
    let channel: (any ClusterChannel)?
    private let ownTime: @Sendable () -> Date

    init(in cluster: (any Cluster)?, now: @escaping @Sendable () -> Date) {
        ownTime = now
        let identity = GatewayIdentity(
            id: UUIDv7.make(), name: ProcessInfo.processInfo.hostName, version: countersignVersion,
            startedMilliseconds: Milliseconds(now()).count)
        member = cluster?.makeMember(identity, now: { Milliseconds(now()).count })
        channel = cluster?.makeChannel(id: identity.id)
    }

    /// False while changes by other gateways may have been missed.
    var isCurrent: Bool { member?.isCurrent ?? true }

    var gateways: Int { member?.gateways ?? 1 }

    func gauges(_ database: DatabaseLoad?) -> ClusterGauges? {
        guard let member, let database else { return nil }
        return ClusterGauges(
            gateways: member.gateways,
            beat: member.lastBeat.map { beat in
                (
                    Milliseconds(beat.ageMilliseconds).seconds,
                    Milliseconds(beat.clockOffsetMilliseconds).seconds,
                    Milliseconds(beat.readerLagMilliseconds).seconds
                )
            }, database: database)
    }

    /// The database's clock, which all gateways share, for scheduled work that any of them may do.
    func sharedTime() -> Date {
        ownTime().addingTimeInterval(-Milliseconds(member?.lastBeat?.clockOffsetMilliseconds ?? 0).seconds)
    }

    func has(_ duty: ClusterDuty) -> Bool { member?.has(duty) ?? true }

    /// `traffic` returns the counts of the minute before a time in milliseconds since 1970. Throws `storage`.
    func start(
        duties: Set<ClusterDuty>, refresh: @escaping @Sendable () throws -> Void,
        traffic: @escaping @Sendable (Int64) -> GatewayTraffic,
        log: GatewayLog
    ) throws(GatewayError) {
        try member?.start(
            ClusterMemberWork(
                duties: duties, refresh: refresh,
                traffic: { [ownTime] in traffic(Milliseconds(ownTime()).count) }
            ) { report in
                switch report {
                case .cutOff(let detail):
                    log.note(.error, "cut off from the database: nothing is accepted", [("detail", detail)])
                case .back: log.note(.info, "the database is reachable again")
                case .clockDiffers(let milliseconds):
                    log.note(
                        .warning, "the clock differs from the database's",
                        [("ahead_ms", String(milliseconds))])
                }
            })
    }

    func announce(_ configuration: GatewayConfiguration, port: UInt16, adminPort: UInt16) {
        var configuration = configuration
        let name = ProcessInfo.processInfo.hostName
        func reachable(_ host: String) -> String { ["0.0.0.0", "::"].contains(host) ? name : host }
        configuration.host = reachable(configuration.host)
        configuration.adminHost = configuration.adminHost.map(reachable)
        member?.announce(
            url: configuration.url(port: port), adminURL: configuration.adminURL(port: adminPort))
    }

    func stop() { member?.stop() }

    /// Rejects requests that depend on keys and apps in memory while these may be outdated. The admin API,
    /// health checks and metrics read current data and are served.
    func guarding(_ handler: @escaping RequestService.Handler) -> RequestService.Handler {
        guard let member else { return handler }
        return { request in
            if member.isCurrent || Self.isAlwaysChecked(request.path) { return handler(request) }
            let failure = StoreFailure(reason: .failed, detail: "cut off from the database")
            return .answer(failure.response(request))
        }
    }

    private static func isAlwaysChecked(_ path: String) -> Bool {
        ["/livez", "/readyz", "/metrics", "/openapi.json"].contains(path) || path.hasPrefix("/admin")
    }
}
