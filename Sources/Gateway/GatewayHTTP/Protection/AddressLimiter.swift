internal import GatewayModel

/// Limits the request rate of each IPv4 address, each IPv6 /64, and all /64s of a /48 together. Some providers
/// assign a whole /48 to one subscriber.
package struct AddressLimiter: Sendable {
    /// The rate limit of a /48, as a multiple of the limit of a /64.
    static let networkShare = 16

    private let units: RateLimiter<NetworkAddress>
    private let networks: RateLimiter<NetworkAddress>

    /// `rate` is requests per second, divided among the gateways counted by `sharers`. 0 means no limit.
    package init(
        rate: Int, sharers: @escaping @Sendable () -> Int = { 1 },
        now: @escaping @Sendable () -> UInt64 = { MonotonicClock.now }
    ) {
        units = RateLimiter(rate: rate, sharers: sharers, now: now)
        networks = RateLimiter(rate: rate * Self.networkShare, sharers: sharers, now: now)
    }

    func rejection(_ request: HTTPRequest) -> HTTPResponse? {
        guard units.rate > 0, let unit = request.limitedUnit else { return nil }
        // The /64 is checked first, so that a rejected request takes no token from the bucket of its /48.
        if let response = units.take(unit).rejection(request, policy: "address", burst: units.burst) {
            return response
        }
        guard !unit.isV4, unit != .unspecified else { return nil }
        return networks.take(unit.network).rejection(request, policy: "network", burst: networks.burst)
    }
}
