internal import CountersignCore
internal import Foundation
internal import GatewayAdmission
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

/// How a gateway takes part in its cluster. One that has its storage alone is always current and has every duty.
struct Membership: Sendable {
    private let member: (any ClusterMember)?
    /// Carries transient messages between the gateways; nil for one that has its storage alone.
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

    /// False when changes of others may have been missed.
    var isCurrent: Bool { member?.isCurrent ?? true }

    /// The gateways that live.
    var gateways: Int { member?.gateways ?? 1 }

    /// What is measured of it; nil where it has its storage alone.
    func gauges(_ database: DatabaseLoad?) -> ClusterGauges? {
        guard let member, let database else { return nil }
        return ClusterGauges(
            gateways: member.gateways,
            beat: member.lastBeat.map { beat in
                ClusterGauges.Beat(
                    ageSeconds: Milliseconds(beat.ageMilliseconds).seconds,
                    clockOffsetSeconds: Milliseconds(beat.clockOffsetMilliseconds).seconds,
                    readerLagSeconds: Milliseconds(beat.readerLagMilliseconds).seconds)
            }, database: database)
    }

    /// The time by the clock that the gateways share, the database's: for what one of them does when it is due, whichever it is.
    func sharedTime() -> Date {
        ownTime().addingTimeInterval(-Milliseconds(member?.lastBeat?.clockOffsetMilliseconds ?? 0).seconds)
    }

    func has(_ duty: ClusterDuty) -> Bool { member?.has(duty) ?? true }

    /// Takes the place. `traffic` is what the gateway has judged in the minute before a time in milliseconds since 1970.
    /// Throws `storage`.
    func start(
        duties: Set<ClusterDuty>, refresh: @escaping @Sendable () throws -> Void,
        tick: @escaping @Sendable () -> Void, traffic: @escaping @Sendable (Int64) -> GatewayTraffic,
        log: GatewayLog
    ) throws(GatewayError) {
        try member?.start(
            ClusterMemberWork(
                duties: duties, refresh: refresh, tick: tick,
                traffic: { [ownTime] in traffic(Milliseconds(ownTime()).count) }
            ) { report in
                switch report {
                case .cutOff(let detail):
                    log.note(.error, "cut off from the database: nothing is accepted", [("detail", detail)])
                case .back: log.note(.info, "the database is there again")
                case .clockDiffers(let milliseconds):
                    log.note(
                        .warning, "the clock differs from the database's",
                        [("ahead_ms", String(milliseconds))])
                }
            })
    }

    /// Tells the others, and commands, where it is.
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

    /// Refuses what is judged by keys and apps in memory while those may be out of date. Operators, health and metrics are
    /// answered: they read what they say at that moment.
    func guarding(_ handler: @escaping RequestService.Handler) -> RequestService.Handler {
        guard let member else { return handler }
        return { request in
            if member.isCurrent || Self.isJudgedAnew(request.path) { return handler(request) }
            let failure = StoreFailure(reason: .failed, detail: "cut off from the database")
            return .answer(failure.response(request))
        }
    }

    private static func isJudgedAnew(_ path: String) -> Bool {
        ["/livez", "/readyz", "/metrics", "/openapi.json"].contains(path) || path.hasPrefix("/admin")
    }
}
