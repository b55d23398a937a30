extension NetworkAddress {
    /// How far the gateway's own requests may go.
    package enum Reach {
        /// The public Internet.
        case everywhere
        /// This machine, a private network, or what is reserved: only where an owner allows it.
        case inside
        /// Link-local addresses and those at which clouds hand credentials to their machines.
        case never
    }

    /// What the address belongs to. An IPv6 address that stands for an IPv4 address goes as far as that one where
    /// translation is common (RFC 6052), and no further than inside by tunnels.
    package var reach: Reach {
        if Self.unreachable.contains(where: { $0.contains(self) }) { return .never }
        if Self.translated.contains(where: { $0.contains(self) }) { return lastV4.reach }
        if let tunnelled { return tunnelled.reach == .never ? .never : .inside }
        return isPublic ? .everywhere : .inside
    }

    /// Why the gateway does not ask it; nil when it does. What is set by less than an owner reaches the public Internet
    /// only, at ports of web servers.
    package func refusal(port: UInt16, allowsPrivateAddresses: Bool) -> String? {
        if reach == .never {
            return "its address is link-local or a cloud's metadata service, which is never allowed"
        }
        if allowsPrivateAddresses { return nil }
        guard reach == .everywhere else {
            return "its address is private; an owner can allow private addresses for it"
        }
        return Self.refusal(port: port)
    }

    /// Why a port is not asked where no owner allows private addresses; nil when it is.
    static func refusal(port: UInt16) -> String? {
        [80, 443].contains(port) || port >= 1_024
            ? nil
            : "its port must be 80, 443 or at least 1024, unless an owner allows private addresses for it"
    }

    /// Whether it is one of the public Internet: none that IANA's registries of special-purpose addresses reserve for
    /// this machine, private networks, documents, tests or translation (RFC 6890).
    private var isPublic: Bool {
        if isV4 { return !Self.reservedV4.contains { $0.contains(self) } }
        // Only this part of IPv6 is given out for public use.
        return Self.publicV6.contains { $0.contains(self) } && !Self.reservedV6.contains { $0.contains(self) }
    }

    /// The IPv4 address inside one of 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214), a translation of one's own
    /// (RFC 8215) or of the deprecated compatible form.
    private var tunnelled: NetworkAddress? {
        if isV4 { return nil }
        if high >> 48 == 0x2002 { return NetworkAddress(v4: UInt32(truncatingIfNeeded: high >> 16)) }
        if high >> 32 == 0x2001_0000 { return NetworkAddress(v4: ~UInt32(truncatingIfNeeded: low)) }
        let isISATAP = low >> 32 & 0xFDFF_FFFF == 0x5EFE
        let isOwnTranslation = high >> 16 == 0x0064_FF9B_0001
        let isCompatible = high == 0 && low >> 32 == 0 && low > 0xFFFF
        return isISATAP || isOwnTranslation || isCompatible ? lastV4 : nil
    }

    /// The IPv4 address in the last 32 bits.
    private var lastV4: NetworkAddress { NetworkAddress(v4: UInt32(truncatingIfNeeded: low)) }

    private static let unreachable = [
        "169.254.0.0/16", "fe80::/10",
        // Metadata outside of the link-local range: Alibaba, Oracle, Azure, AWS and Google over IPv6.
        "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
    ].compactMap { AddressRange($0) }

    private static let translated = ["64:ff9b::/96"].compactMap { AddressRange($0) }

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
