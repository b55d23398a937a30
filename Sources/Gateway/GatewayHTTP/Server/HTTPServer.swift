internal import CHTTPServer
internal import CountersignCore
package import Foundation
package import GatewayModel

/// An HTTP/1.1 server with limits and deadlines. A response may follow later, such as after a commit to disk.
/// Runs several loops on one port, each with a thread. All limits apply to the loops together.
package final class HTTPServer: Sendable {
    package let service: RequestService
    private let certificates: TLSCertificates?
    private let together: RequestService.Together
    private let loopCount: Int
    private let loops = Lock<[ServerLoop]>([])
    private let running = DispatchGroup()

    /// One loop for each usable processor, at most 8. With more loops, storing events is the bottleneck.
    package static var usualLoopCount: Int { min(8, max(1, Int(countersign_usable_loops()))) }

    /// `credentialHeaders` are lower-case, and a request may have each of them only once. `report` gets advice when no
    /// file descriptor is free for a connection.
    package init(
        limits: GatewayLimits, memory: BodyMemory? = nil, trustedProxies: [AddressRange] = [],
        certificates: TLSCertificates? = nil, observer: any GatewayObserver, sampler: TraceSampler? = nil,
        credentialHeaders: [StaticString] = [], loopCount: Int = 1,
        now: @escaping @Sendable () -> Date = { Date() },
        report: @escaping @Sendable (String) -> Void = { _ in },
        together: @escaping RequestService.Together = { $0() },
        decorate: @escaping RequestService.Decorator = { _, _ in },
        handler: @escaping RequestService.Handler
    ) {
        self.certificates = certificates
        self.together = together
        self.loopCount = loopCount
        service = RequestService(
            limits: limits, memory: memory ?? BodyMemory(limit: limits.bodyMemoryBytes),
            trustedProxies: trustedProxies, observer: observer, sampler: sampler,
            rules: HeadLimits(limits, credentialFields: credentialHeaders), now: now, report: report,
            decorate: decorate, handler: handler)
    }

    /// Binds the port and starts to serve. Returns the port, which the system chooses if `port` is 0. Throws
    /// `cannotBind`, also if no file descriptor is free.
    package func start(host: String, port: UInt16) throws(GatewayError) -> UInt16 {
        var made: [ServerLoop] = []
        for _ in 0..<loopCount {
            made.append(try ServerLoop(service, certificates: certificates, together: together))
        }
        var sockets = [Int32](repeating: -1, count: loopCount)
        errno = 0
        let bound = countersign_listen(host, port, &sockets, Int32(loopCount))
        guard bound > 0 else {
            let error = errno
            let why = error == 0 ? "not an IPv4 or IPv6 address" : String(cString: strerror(error))
            throw GatewayError(
                .cannotBind, "cannot listen on \(host) port \(port): \(why)", hint: Self.hint(error))
        }
        for (loop, socket) in zip(made, sockets) {
            running.enter()
            let thread = Thread { [running] in
                loop.run(socket)
                running.leave()
            }
            thread.name = "http"
            thread.start()
        }
        loops.withLock { $0 = made }
        return UInt16(bound)
    }

    /// Advice for the `errno` of a failed bind, or nil.
    static func hint(_ error: Int32) -> String? {
        switch error {
        case EADDRINUSE: "Stop the other program, or choose another port."
        case EACCES:
            "Choose a port from 1024 up, behind a proxy, or give the service CAP_NET_BIND_SERVICE."
        case EADDRNOTAVAIL: "Choose an address of this machine; 0.0.0.0 is every IPv4 address."
        default: nil
        }
    }

    /// Stops accepting connections, and waits for requests that have begun. Closes slow transfers after the grace time.
    package func stop(graceSeconds: Double) {
        let stopping = loops.withLock { loops in
            defer { loops = [] }
            return loops
        }
        for loop in stopping { loop.beginStop(graceSeconds: graceSeconds) }
        if !stopping.isEmpty { running.wait() }
    }

    package var connectionCount: Int { service.connections.count }
}
