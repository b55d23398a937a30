/// Rejects private addresses for requests that the gateway sends (server-side request forgery).
///
/// The gateway checks URLs when they are set, and addresses each time that a socket connects, because a name may
/// resolve to another address by then.
package enum PrivateAddressGuard {
    /// The reason why the gateway must not connect to an address; nil if it may. Unless an owner allows private
    /// addresses, the gateway connects only to the public Internet, at the ports 80, 443 and 1024 to 65535.
    package static func rejection(
        of address: NetworkAddress, port: UInt16, allowsPrivateAddresses: Bool
    ) -> String? {
        if address.reach == .never {
            return "its address is link-local or a cloud's metadata service, which is never allowed"
        }
        if allowsPrivateAddresses { return nil }
        guard address.reach == .everywhere else {
            return "the address is private; an owner can allow private addresses"
        }
        return rejection(ofPort: port)
    }

    static func rejection(ofPort port: UInt16) -> String? {
        [80, 443].contains(port) || port >= 1_024
            ? nil
            : "its port must be 80, 443 or at least 1024, unless an owner allows private addresses for it"
    }
}

extension NetworkAddress {
    package enum Reach {
        /// The public Internet.
        case everywhere
        /// This machine, a private network or a reserved range, which needs an owner's permission.
        case inside
        /// Link-local addresses and cloud metadata services.
        case never
    }

    /// The reach of the address. A translation of an IPv4 address (RFC 6052) has the reach of the IPv4 address. An
    /// IPv6 address of a tunnel is never `everywhere`.
    package var reach: Reach {
        if Self.unreachable.contains(where: { $0.contains(self) }) { return .never }
        if untranslated != self { return untranslated.reach }
        if let tunnelled { return tunnelled.reach == .never ? .never : .inside }
        return isPublic ? .everywhere : .inside
    }

    /// The IPv4 address of an address in 64:ff9b::/96, the prefix for translation (RFC 6052); otherwise the address.
    var untranslated: NetworkAddress { high == 0x0064_FF9B_0000_0000 && low >> 32 == 0 ? lastV4 : self }

    /// Whether the address is outside of IANA's special-purpose ranges (RFC 6890).
    private var isPublic: Bool {
        if isV4 { return !Self.reservedV4.contains { $0.contains(self) } }
        // IANA allocates public IPv6 addresses only from 2000::/3.
        return Self.publicV6.contains { $0.contains(self) } && !Self.reservedV6.contains { $0.contains(self) }
    }

    /// The IPv4 address embedded in a 6to4 (RFC 3056), Teredo (RFC 4380), ISATAP (RFC 5214), local-use
    /// translation (RFC 8215) or deprecated IPv4-compatible address.
    private var tunnelled: NetworkAddress? {
        if isV4 { return nil }
        if high >> 48 == 0x2002 { return NetworkAddress(v4: UInt32(truncatingIfNeeded: high >> 16)) }
        if high >> 32 == 0x2001_0000 { return NetworkAddress(v4: ~UInt32(truncatingIfNeeded: low)) }
        let isISATAP = low >> 32 & 0xFDFF_FFFF == 0x5EFE
        let isOwnTranslation = high >> 16 == 0x0064_FF9B_0001
        let isCompatible = high == 0 && low >> 32 == 0 && low > 0xFFFF
        return isISATAP || isOwnTranslation || isCompatible ? lastV4 : nil
    }

    private var lastV4: NetworkAddress { NetworkAddress(v4: UInt32(truncatingIfNeeded: low)) }

    private static let unreachable = [
        "169.254.0.0/16", "fe80::/10",
        // Metadata services outside of the link-local range: Alibaba, Oracle, Azure, AWS and Google over IPv6.
        "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
    ].compactMap { AddressRange($0) }

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
