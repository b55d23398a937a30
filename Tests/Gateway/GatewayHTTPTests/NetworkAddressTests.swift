import Testing

@testable import GatewayHTTP
@testable import GatewayModel

/// Addresses to which the gateway may send requests.
struct NetworkAddressTests {
    @Test(arguments: [
        ("8.8.8.8", true), ("172.15.255.255", true), ("172.32.0.0", true), ("223.255.255.255", true),
        ("2606:4700::1111", true), ("2a00:1450::1", true), ("::ffff:8.8.8.8", true),
        ("0.0.0.0", false), ("10.1.2.3", false), ("100.64.0.1", false), ("127.0.0.1", false),
        ("169.254.169.254", false), ("172.16.0.1", false), ("172.31.255.255", false), ("192.0.0.8", false),
        ("192.0.2.1", false), ("192.88.99.1", false), ("192.168.1.1", false), ("198.18.0.1", false),
        ("198.51.100.1", false), ("203.0.113.1", false), ("224.0.0.1", false), ("255.255.255.255", false),
        ("::", false), ("::1", false), ("::ffff:10.0.0.1", false), ("64:ff9b::a00:1", false),
        ("64:ff9b::808:808", true),
        ("fc00::1", false), ("fd12::1", false), ("fe80::1", false), ("ff02::1", false),
        ("2001::1", false), ("2001:db8::1", false), ("2002:a00:1::", false), ("3fff::1", false),
    ])
    func onlyGloballyRoutableAddressesArePublic(address: String, isPublic: Bool) throws {
        #expect((try #require(NetworkAddress(address)).reach == .everywhere) == isPublic)
    }

    @Test(arguments: [
        "169.254.169.254", "169.254.0.1", "fe80::1", "febf::1", "::ffff:169.254.169.254",
        "::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:5601:5601", "2a00:1450::5efe:a9fe:a9fe",
        "2a00:1450::200:5efe:169.254.169.254",
        "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    ])
    func linkLocalAndReservedAddressesAreAlwaysRejected(address: String) throws {
        let target = try #require(NetworkAddress(address))
        #expect(target.reach == .never)
        for allows in [false, true] {
            #expect(
                PrivateAddressGuard.rejection(of: target, port: 443, allowsPrivateAddresses: allows) != nil)
        }
    }

    @Test(arguments: [
        ("8.8.8.8", 25, false), ("8.8.8.8", 443, true), ("8.8.8.8", 80, true), ("8.8.8.8", 8443, true),
    ])
    func onlyWebPortsAreAllowedUnlessAnOwnerAllowsMore(address: String, port: Int, isOpen: Bool) throws {
        let target = try #require(NetworkAddress(address))
        let port = UInt16(port)
        func rejection(allowsPrivate: Bool) -> String? {
            PrivateAddressGuard.rejection(of: target, port: port, allowsPrivateAddresses: allowsPrivate)
        }
        #expect((rejection(allowsPrivate: false) == nil) == isOpen)
        #expect(rejection(allowsPrivate: true) == nil)
    }
}
