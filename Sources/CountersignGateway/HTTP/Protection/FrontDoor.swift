/// What every request passes before its endpoint: the limit of its address, and the rules for web pages.
struct FrontDoor: Sendable {
    let router: Router
    let addresses: RateLimiter<NetworkAddress>
    let cors: CORS

    func answer(_ request: HTTPRequest) -> HTTPOutcome {
        if let refusal = overLimit(request) { return cors.decorated(.answer(refusal), for: request) }
        // No app's page may call the administration.
        if request.path.hasPrefix("/admin") { return router.route(request) }
        if request.method == "OPTIONS",
            let answer = cors.preflight(request, methods: router.methods(of: request.path))
        {
            return .answer(answer)
        }
        return cors.decorated(router.route(request), for: request)
    }

    private func overLimit(_ request: HTTPRequest) -> HTTPResponse? {
        guard addresses.rate > 0 else { return nil }
        return request.limitedUnit.flatMap {
            addresses.take($0).refusal(request, policy: "address", burst: addresses.burst)
        }
    }
}

extension HTTPRequest {
    /// Whose requests count together for every limit of addresses; nil for this machine's own, which have none. Those of
    /// whom a proxy says nothing count as one.
    var limitedUnit: NetworkAddress? {
        isFromLoopback && !isForwarded ? nil : NetworkAddress(clientAddress)?.limitedUnit ?? .unspecified
    }

    /// True when its address is one of this machine's own, which may be that of a proxy.
    var isFromLoopback: Bool {
        guard let address = NetworkAddress(clientAddress) else { return false }
        return AddressRange.loopback.contains { $0.contains(address) }
    }
}
