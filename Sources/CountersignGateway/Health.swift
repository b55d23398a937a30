internal import CountersignCore

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
        let result = Lock<Result<Void, StoreFailure>?>(nil)
        return .later(
            start: { resume in
                store.probe { outcome in
                    result.withLock { $0 = outcome }
                    resume()
                }
            },
            finish: {
                switch result.withLock({ $0 }) {
                case .success: .text(200, "ready\n")
                case .failure(let failure):
                    .text(503, "not ready: \(failure.summary)\n")
                        .with("Retry-After", String(failure.retryAfterSeconds))
                case nil: .text(503, "not ready\n")
                }
            })
    }
}
