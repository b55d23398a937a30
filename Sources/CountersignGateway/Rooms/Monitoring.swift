internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability

/// `/metrics`.
struct Monitoring: Sendable {
    let metrics: Metrics
    /// Who may read it.
    let readers: [AddressRange]
    /// Measures what is not counted.
    let gauges: @Sendable () -> Gauges

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/metrics") { request, _ in
                let address = NetworkAddress(request.clientAddress)
                // A request is not this machine's own because its proxy is here.
                let isProxys = request.isFromLoopback && request.namesProxies
                guard let address, !isProxys, readers.contains(where: { $0.contains(address) }) else {
                    return .answer(
                        .failure(
                            403, code: "forbidden",
                            reason: "this address may not read metrics; see the setting metrics-from",
                            requestID: request.id))
                }
                return .answer(
                    HTTPResponse(
                        status: 200,
                        headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                        body: metrics.text(gauges())))
            }.described(
                APIOperation(
                    summary: "Print what is counted, for Prometheus",
                    contentType: "text/plain; version=0.0.4; charset=utf-8", refusals: [403]))
        ]
    }
}
