internal import CountersignCore
internal import Foundation
internal import GatewayModel

/// What the loops of a server share.
final class ServerCommon: Sendable {
    let service: RequestService
    let limits: GatewayLimits
    let trustedProxies: [AddressRange]
    let certificates: TLSCertificates?
    let observer: any GatewayObserver
    /// Runs what it is given, which starts the work of all requests of one pass.
    let together: @Sendable (() -> Void) -> Void
    let connections: ConnectionWatch
    let memory: BodyMemory
    let holders: MemoryHolders
    private let streams = Lock(0)

    /// Answers that go on: each may hold some pages.
    private static let mostStreams = 64

    init(
        limits: GatewayLimits, memory: BodyMemory, trustedProxies: [AddressRange],
        certificates: TLSCertificates?, observer: any GatewayObserver, sampler: TraceSampler?,
        now: @escaping @Sendable () -> Date, report: @escaping @Sendable (String) -> Void,
        together: @escaping @Sendable (() -> Void) -> Void,
        decorate: @escaping RequestService.Decorator, handler: @escaping RequestService.Handler
    ) {
        self.limits = limits
        self.memory = memory
        self.trustedProxies = trustedProxies
        self.certificates = certificates
        self.observer = observer
        self.together = together
        connections = ConnectionWatch(limits: limits, report: report)
        holders = MemoryHolders(limit: limits.bodyMemoryBytes, connections: connections)
        service = RequestService(
            limits: limits, memory: memory, trustedProxies: trustedProxies, observer: observer,
            sampler: sampler, now: now, decorate: decorate, handler: handler)
    }

    /// Takes a place for an answer that goes on; false when there is none.
    func takeStream() -> Bool {
        streams.withLock { streams in
            guard streams < Self.mostStreams else { return false }
            streams += 1
            return true
        }
    }

    func giveStream() { streams.withLock { $0 -= 1 } }
}
