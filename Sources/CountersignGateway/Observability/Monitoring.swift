/// `/metrics`.
struct Monitoring: Sendable {
    let metrics: Metrics
    /// Measures what is not counted.
    let gauges: @Sendable () -> Gauges

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/metrics") { _, _ in
                .answer(
                    HTTPResponse(
                        status: 200,
                        headers: [("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
                        body: metrics.text(gauges())))
            }
        ]
    }
}
