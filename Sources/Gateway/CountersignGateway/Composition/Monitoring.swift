internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability

struct Monitoring: Sendable {
    let metrics: Metrics
    let readers: [AddressRange]
    /// Measures gauges. May wait for the disk.
    let gauges: @Sendable () -> Gauges
    private let queue = BoundedQueue(label: "metrics", capacity: 16)

    init(metrics: Metrics, readers: [AddressRange], gauges: @escaping @Sendable () -> Gauges) {
        self.metrics = metrics
        self.readers = readers
        self.gauges = gauges
    }

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/metrics") { request, _ in
                let address = NetworkAddress(request.clientAddress)
                // A request forwarded by a local proxy does not count as local.
                let isProxys = request.isFromLoopback && request.namesProxies
                guard let address, !isProxys, readers.contains(where: { $0.contains(address) }) else {
                    return .answer(
                        request.failure(
                            403, "forbidden",
                            "this address may not read metrics; see the setting metrics-from"))
                }
                guard queue.take() else {
                    return .answer(
                        request.failure(503, "overloaded", "too many requests for metrics; try again")
                            .with("Retry-After", "1"))
                }
                return .waiting({ [queue, metrics, gauges] done in
                    queue.async { done(metrics.text(gauges())) }
                }) { text in
                    HTTPResponse(
                        status: 200,
                        headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")], body: text)
                }
            }.described(
                APIOperation(
                    summary: "Read the metrics in the format of Prometheus",
                    contentType: "text/plain; version=0.0.4; charset=utf-8", rejections: [403]))
        ]
    }
}
