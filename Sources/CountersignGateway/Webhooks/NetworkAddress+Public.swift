internal import Foundation

extension NetworkAddress {
    /// The address that a socket is about to connect to; nil for what is neither IPv4 nor IPv6.
    init?(_ address: UnsafePointer<sockaddr>, length: Int) {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN) + 1)
        let raw = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            var v4 = raw.loadUnaligned(as: sockaddr_in.self).sin_addr
            guard inet_ntop(AF_INET, &v4, &text, socklen_t(text.count)) != nil else { return nil }
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            var v6 = raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr
            guard inet_ntop(AF_INET6, &v6, &text, socklen_t(text.count)) != nil else { return nil }
        default: return nil
        }
        self.init(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    /// Whether it is one of the public Internet: none that IANA's registries of special-purpose addresses reserve for
    /// this machine, private networks, documents, tests or translation (RFC 6890).
    var isPublic: Bool {
        if isV4 { return !Self.reservedV4.contains { $0.contains(self) } }
        // Only this part of IPv6 is given out for public use.
        return Self.publicV6.contains { $0.contains(self) } && !Self.reservedV6.contains { $0.contains(self) }
    }

    private static let reservedV4 = [
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24", "224.0.0.0/3",
    ].compactMap { AddressRange($0) }

    private static let publicV6 = ["2000::/3"].compactMap { AddressRange($0) }

    private static let reservedV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"]
        .compactMap { AddressRange($0) }
}
