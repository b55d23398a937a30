import Testing

@testable import GatewayHTTP
@testable import GatewayModel

struct ClientAddressTests {
    private let proxies = ["10.0.0.0/8", "::1", "2001:db8::/32"].compactMap { AddressRange($0) }

    @Test(arguments: [
        ("192.0.2.1", ["203.0.113.5"], "192.0.2.1"), ("10.1.2.3", [], "10.1.2.3"),
        ("10.1.2.3", ["203.0.113.5"], "203.0.113.5"), ("10.1.2.3", ["1.1.1.1, 203.0.113.5"], "203.0.113.5"),
        ("10.1.2.3", ["203.0.113.5, 10.9.9.9"], "203.0.113.5"),
        ("10.1.2.3", ["203.0.113.5", "10.9.9.9"], "203.0.113.5"),
        ("10.1.2.3", ["10.8.8.8,10.9.9.9"], "10.8.8.8"),
        ("10.1.2.3", ["203.0.113.5, rubbish, 10.9.9.9"], ""), ("10.1.2.3", [""], "10.1.2.3"),
        ("2001:db8::7", ["2001:470::1"], "2001:470::1"), ("::1", ["203.0.113.5\r"], ""),
        ("11.0.0.1", ["203.0.113.5"], "11.0.0.1"), ("11.0.0.1", ["rubbish"], "11.0.0.1"),
        ("10.1.2.3", ["203.0.113.5:4711"], "203.0.113.5"),
        ("10.1.2.3", ["203.0.113.5:4711, 10.9.9.9:80"], "203.0.113.5"),
        ("10.1.2.3", ["[2001:470::1]:4711"], "2001:470::1"), ("10.1.2.3", ["[2001:470::1]"], "2001:470::1"),
        ("10.1.2.3", ["203.0.113.5, "], "203.0.113.5"), ("10.1.2.3", [" , ,203.0.113.5\t,"], "203.0.113.5"),
        ("10.1.2.3", ["unknown"], ""), ("10.1.2.3", ["_hidden"], ""), ("10.1.2.3", ["203.0.113.5:"], ""),
        ("10.1.2.3", ["203.0.113.5:99999"], ""), ("10.1.2.3", ["203.0.113.5:x"], ""),
        ("10.1.2.3", ["[203.0.113.5]"], ""),
        ("10.1.2.3", ["[2001:470::1"], ""), ("10.1.2.3", ["[2001:470::1]x"], ""),
        ("10.1.2.3", ["\"203.0.113.5\""], ""),
        ("10.1.2.3", ["203.0.113.5 10.9.9.9"], ""), ("10.1.2.3", ["1.1.1.1", "rubbish"], ""),
        ("10.1.2.3", [String(repeating: "10.9.9.9,", count: 40)], ""),
    ])
    func onlyAddressesFromTrustedProxiesCount(peer: String, forwarded: [String], client: String) {
        #expect(ClientAddress.resolve(peer: peer, forwarded: forwarded, proxies: proxies) == client)
    }

    @Test func noProxyIsTrustedByDefault() {
        #expect(ClientAddress.resolve(peer: "127.0.0.1", forwarded: ["1.1.1.1"], proxies: []) == "127.0.0.1")
    }

    @Test(arguments: [
        "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "::/129", "host", "", "1.2.3.4/",
    ])
    func anInvalidRangeIsRejected(text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test func ipv6AddressesAreLimitedByTheirNetwork() throws {
        let one = try #require(NetworkAddress("2001:db8:1:2:3::4"))
        let other = try #require(NetworkAddress("2001:db8:1:2:ffff::1"))
        let stranger = try #require(NetworkAddress("2001:db8:1:3::4"))
        #expect(one.limitedUnit == other.limitedUnit)
        #expect(one.limitedUnit != stranger.limitedUnit)
        let first = try #require(NetworkAddress("192.0.2.1"))
        let second = try #require(NetworkAddress("192.0.2.2"))
        #expect(first.limitedUnit != second.limitedUnit)
        #expect(NetworkAddress("::ffff:192.0.2.1") == first)
        #expect(NetworkAddress("64:ff9b::192.0.2.1")?.limitedUnit == first)
    }

    @Test(arguments: [
        ("192.0.2.7", "192.0.2.0/24"), ("::ffff:192.0.2.7", "192.0.2.0/24"),
        ("64:ff9b::192.0.2.7", "192.0.2.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48"), ("rubbish", ""),
        ("1.2.3.x", ""), ("", ""),
    ])
    func samplesHaveATruncatedNetwork(address: String, network: String) {
        #expect(FailureSample.network(of: address) == network)
    }
}
