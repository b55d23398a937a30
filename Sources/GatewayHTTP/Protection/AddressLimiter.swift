internal import Foundation
internal import GatewayModel

/// Limits the requests of an address: of an IPv4 address, of an IPv6 /64, and of all /64s of a /48 together, since one
/// customer may have a whole /48.
package struct AddressLimiter: Sendable {
    /// The rate of a /48 in rates of a /64.
    static let networkShare = 16

    private let units: RateLimiter<NetworkAddress>
    private let networks: RateLimiter<NetworkAddress>

    /// `rate` is requests a second, of all the gateways that `sharers` counts together; 0 is no limit.
    package init(
        rate: Int, sharers: @escaping @Sendable () -> Int = { 1 },
        now: @escaping @Sendable () -> UInt64 = { DispatchTime.now().uptimeNanoseconds }
    ) {
        units = RateLimiter(rate: rate, sharers: sharers, now: now)
        networks = RateLimiter(rate: rate * Self.networkShare, sharers: sharers, now: now)
    }

    /// The rejection of a request over the limit, 429; nil for others.
    func rejection(_ request: HTTPRequest) -> HTTPResponse? {
        guard units.rate > 0, let unit = request.limitedUnit else { return nil }
        // The /64 is limited first, so that a rejected request takes no token of its network.
        if let response = units.take(unit).refusal(request, policy: "address", burst: units.burst) {
            return response
        }
        guard !unit.isV4, unit != .unspecified else { return nil }
        return networks.take(unit.network).refusal(request, policy: "network", burst: networks.burst)
    }
}
