internal import CountersignCore
package import GatewayModel

/// Runs before the endpoint of every request: the rate limit of the address and CORS.
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
        if let rejection = addresses.rejection(request) {
            return cors.decorated(.answer(rejection), for: request)
        }
        // CORS never applies to the admin API.
        if request.path.hasPrefix("/admin") { return router.route(request) }
        if let answer = cors.preflight(request) { return .answer(answer) }
        return cors.decorated(router.route(request), for: request)
    }

    package func makeReadable(_ response: inout HTTPResponse, for request: HTTPRequest) {
        guard request.headerBytes("origin") != nil, !request.path.hasPrefix("/admin"),
            !response.headers.contains(where: { $0.name == "Vary" && $0.value == "Origin" }),
            case .answer(let decorated) = cors.decorated(.answer(response), for: request)
        else { return }
        response = decorated
    }
}

extension HTTPRequest {
    /// The address or network whose requests are limited together; nil for a direct request from this machine.
    /// Forwarded requests without a valid client address share one unit.
    package var limitedUnit: NetworkAddress? {
        isFromLoopback && !isForwarded ? nil : NetworkAddress(clientAddress)?.limitedUnit ?? .unspecified
    }

    /// Whether the client's address is a loopback address. It may belong to a proxy.
    package var isFromLoopback: Bool {
        guard let address = NetworkAddress(clientAddress) else { return false }
        return AddressRange.loopback.contains { $0.contains(address) }
    }
}
