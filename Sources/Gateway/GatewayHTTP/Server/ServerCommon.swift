internal import CountersignCore
internal import Foundation
internal import GatewayModel

final class ServerCommon: Sendable {
    let service: RequestService
    let limits: GatewayLimits
    let trustedProxies: [AddressRange]
    let certificates: TLSCertificates?
    let observer: any GatewayObserver
    let together: @Sendable (() -> Void) -> Void
    let rules: HeadRules
    let connections: ConnectionTable
    let memory: BodyMemory
    let holders: EvictionQueue
    private let streams = Lock(0)

    /// The maximum number of streamed responses; each may hold some pages in memory.
    private static let mostStreams = 64

    init(
        limits: GatewayLimits, memory: BodyMemory, trustedProxies: [AddressRange],
        certificates: TLSCertificates?, observer: any GatewayObserver, sampler: TraceSampler?,
        rules: HeadRules, now: @escaping @Sendable () -> Date,
        report: @escaping @Sendable (String) -> Void,
        together: @escaping @Sendable (() -> Void) -> Void,
        decorate: @escaping RequestService.Decorator, handler: @escaping RequestService.Handler
    ) {
        self.limits = limits
        self.memory = memory
        self.trustedProxies = trustedProxies
        self.certificates = certificates
        self.observer = observer
        self.together = together
        self.rules = rules
        connections = ConnectionTable(limits: limits, report: report)
        holders = EvictionQueue(limit: limits.bodyMemoryBytes, connections: connections)
        service = RequestService(
            limits: limits, memory: memory, trustedProxies: trustedProxies, observer: observer,
            sampler: sampler, rules: rules, now: now, decorate: decorate, handler: handler)
    }

    func takeStream() -> Bool {
        streams.withLock { streams in
            guard streams < Self.mostStreams else { return false }
            streams += 1
            return true
        }
    }

    func giveStream() { streams.withLock { $0 -= 1 } }
}
