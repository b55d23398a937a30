internal import CountersignCore
package import GatewayModel

/// What every request passes before its endpoint: the limit of its address, and the rules for web pages.
package struct Middleware: Sendable {
    let router: Router
    package let addresses: AddressLimiter
    package let cors: CORS

    package init(router: Router, addresses: AddressLimiter, cors: CORS) {
        self.router = router
        self.addresses = addresses
        self.cors = cors
    }

    package func answer(_ request: HTTPRequest) -> HTTPOutcome {
        if let refusal = addresses.rejection(request) {
            return cors.decorated(.answer(refusal), for: request)
        }
        // No app's page may call the administration.
        if request.path.hasPrefix("/admin") { return router.route(request) }
        if let answer = cors.preflight(request) { return .answer(answer) }
        return cors.decorated(router.route(request), for: request)
    }

    /// Adds CORS headers to a response that was created outside of this middleware.
    package func readable(_ response: HTTPResponse, for request: HTTPRequest) -> HTTPResponse {
        guard request.headerBytes("origin") != nil, !request.path.hasPrefix("/admin"),
            !response.headers.contains(where: { $0.name == "Vary" && $0.value == "Origin" }),
            case .answer(let decorated) = cors.decorated(.answer(response), for: request)
        else { return response }
        return decorated
    }
}

extension HTTPRequest {
    /// Whose requests count together for every limit of addresses; nil for this machine's own, which have none. Those of
    /// whom a proxy says nothing count as one.
    package var limitedUnit: NetworkAddress? {
        isFromLoopback && !isForwarded ? nil : NetworkAddress(clientAddress)?.limitedUnit ?? .unspecified
    }

    /// True when its address is one of this machine's own, which may be that of a proxy.
    package var isFromLoopback: Bool {
        guard let address = NetworkAddress(clientAddress) else { return false }
        return AddressRange.loopback.contains { $0.contains(address) }
    }
}
