/// `/livez` and `/readyz`.
///
/// Alive: a thread answers. Ready: the store can be written now, which each request proves by a small write of its
/// own, in the same commit as whatever else waits.
struct Health: Sendable {
    let store: any EventStore

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/livez") { _, _ in .answer(.text(200, "ok\n")) },
            Endpoint(method: "GET", path: "/readyz") { _, _ in readiness() },
        ]
    }

    private func readiness() -> HTTPOutcome {
        .waiting({ store.probe(completion: $0) }) { result in
            switch result {
            case .success: .text(200, "ready\n")
            case .failure(let failure):
                .text(503, "not ready: \(failure.summary)\n").with(
                    "Retry-After", String(failure.retryAfterSeconds))
            }
        }
    }
}
