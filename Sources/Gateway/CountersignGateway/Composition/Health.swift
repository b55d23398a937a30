internal import CountersignCore
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel

/// `/livez`, which shows only that a server thread responds, and `/readyz`.
///
/// A ready gateway is not draining, can read changes to apps and sessions, and can write to the store. Each request
/// for `/readyz` adds a small test write to the next commit.
struct Health: Sendable {
    let store: any EventStore
    let diskFloorBytes: Int
    /// False while changes by other gateways may have been missed.
    let isCurrent: @Sendable () -> Bool
    let isDraining: @Sendable () -> Bool
    /// The state of reading changes by other processes. After a failed read, the gateway uses the values of the last
    /// successful read, and stays ready for ``RefreshHealth/patienceMilliseconds``.
    let reads: [(name: String, health: RefreshHealth)]

    var endpoints: [Endpoint] {
        [
            Endpoint(method: "GET", path: "/livez") { _, _ in .answer(.text(200, "ok\n")) }
                .described(.health("Check that the gateway answers")),
            Endpoint(method: "GET", path: "/readyz") { request, _ in
                readiness(isVerbose: request.query == "verbose")
            }.described(.health("Check whether requests can be stored now")),
        ]
    }

    private func readiness(isVerbose: Bool) -> HTTPOutcome {
        guard isCurrent() else {
            let text = "not ready: cut off from the database, nothing is accepted\n"
            return .answer(.text(503, (isVerbose ? "[-] database: not read for 5 s\n" : "") + text))
        }
        return .waiting({ store.probe(completion: $0) }) { result in
            var failure: StoreFailure?
            if case .failure(let found) = result { failure = found }
            if isDraining() { failure = failure ?? StoreFailure(reason: .closed, detail: "draining") }
            let stale = reads.first { $0.health.isStale }.map { read in
                "changes to \(read.name) could not be read for "
                    + "\(RefreshHealth.patienceMilliseconds / 1_000) s: \(read.health.problem ?? "no answer yet")"
            }
            var text = (failure?.summary ?? stale).map { "not ready: \($0)\n" } ?? "ready\n"
            if isVerbose { text = checks(result) + text }
            let response = HTTPResponse.text(failure == nil && stale == nil ? 200 : 503, text)
            return failure.map { response.with("Retry-After", String($0.retryAfterSeconds)) } ?? response
        }
    }

    private func checks(_ result: Result<Void, StoreFailure>) -> String {
        let load = store.load
        var lines: [(isGood: Bool, text: String)] = []
        switch result {
        case .success: lines.append((true, "storage: written just now"))
        case .failure(let failure): lines.append((false, "storage: \(failure.summary)"))
        }
        if let free = load.freeBytes {
            lines.append(
                (
                    free >= diskFloorBytes,
                    "disk: \(free >> 20) MiB free, the floor is \(diskFloorBytes >> 20) MiB"
                ))
        }
        lines.append((true, "queue: \(load.waitingBatches) batches wait for the disk"))
        for (name, health) in reads {
            let problem = health.problem
            lines.append(
                (problem == nil, problem.map { "\(name): \($0); the last read applies" } ?? "\(name): read")
            )
        }
        lines.append((!isDraining(), isDraining() ? "draining: about to stop" : "draining: no"))
        return lines.map { "[\($0.isGood ? "+" : "-")] \($0.text)\n" }.joined()
    }
}

extension APIOperation {
    fileprivate static func health(_ summary: String) -> APIOperation {
        APIOperation(summary: summary, contentType: "text/plain; charset=utf-8")
    }
}
