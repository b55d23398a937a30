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
        let address = NetworkAddress(request.clientAddress)
        if !request.isForwarded, let address, AddressRange.loopback.contains(where: { $0.contains(address) })
        {
            return nil
        }
        // Those of whom a proxy says nothing share one limit.
        return addresses.take(address?.limitedUnit ?? .unspecified).refusal(
            request, policy: "address", burst: addresses.burst)
    }
}
