internal import CountersignCore
internal import Foundation

/// An IPv6 address, or an IPv4 address in its mapped form (RFC 4291, section 2.5.5.2).
package struct NetworkAddress: Hashable, Sendable {
    package private(set) var high: UInt64 = 0
    package private(set) var low: UInt64 = 0

    package init?(_ text: some StringProtocol) {
        let text = String(text)
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            low = bytes[..<4].reduce(0xFFFF) { $0 << 8 | UInt64($1) }
            return
        }
        guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Parses an IPv4 address as inet_aton does: one to four numbers, decimal, octal after `0` or hexadecimal
    /// after `0x`. The last number fills the remaining bytes: `2130706433` and `0x7f.1` are 127.0.0.1.
    package init?(numbers text: String) {
        var address = in_addr()
        guard text.utf8.first?.isASCIIDigit == true, inet_aton(text, &address) != 0 else { return nil }
        self.init(v4: UInt32(bigEndian: address.s_addr))
    }

    package init(v4: UInt32) {
        low = 0xFFFF << 32 | UInt64(v4)
    }

    /// `::`, which no interface has (RFC 4291, section 2.5.2).
    package static let unspecified = NetworkAddress(high: 0, low: 0)

    private init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package var isV4: Bool { high == 0 && low >> 32 == 0xFFFF }

    func masked(_ bits: Int) -> NetworkAddress {
        func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(UInt64.max >> UInt64(bits)) }
        return NetworkAddress(high: high & mask(bits), low: low & mask(bits - 64))
    }

    /// The unit of rate limits: an IPv4 address, even if translated, or the /64 of an IPv6 address, the usual size
    /// of a customer's network.
    package var limitedUnit: NetworkAddress { untranslated.isV4 ? untranslated : masked(64) }

    /// The /48 of an IPv6 address, the largest block usually assigned to one site (RFC 6177).
    package var network: NetworkAddress { masked(48) }
}

/// A range of addresses, such as `10.0.0.0/8`, `fd00::/8` or `192.0.2.7`.
public struct AddressRange: Sendable, Equatable, CustomStringConvertible {
    private let base: NetworkAddress
    private let bits: Int
    /// The range as given.
    public let description: String

    /// Nil when the text is not a range, or when bits are set after the prefix.
    ///
    /// - Parameter text: A literal IPv4 or IPv6 address, optionally followed by `/` and the prefix length.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = NetworkAddress(parts[0]) else { return nil }
        let offset = address.isV4 ? 96 : 0
        var bits = 128
        if parts.count > 1 {
            guard let given = Int(parts[1]), (0...(128 - offset)).contains(given) else { return nil }
            bits = given + offset
        }
        guard address.masked(bits) == address else { return nil }
        base = address
        self.bits = bits
        description = text
    }

    package func contains(_ address: NetworkAddress) -> Bool { address.masked(bits) == base }

    /// The loopback addresses, which only this machine can use.
    public static let loopback = ["127.0.0.0/8", "::1"].compactMap { AddressRange($0) }
}
