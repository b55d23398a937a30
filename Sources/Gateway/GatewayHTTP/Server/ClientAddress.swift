internal import CountersignCore
internal import GatewayModel

enum ClientAddress {
    /// The result if a trusted proxy sent an invalid address, or after too many proxies.
    static let unknown = ""

    private static let mostProxies = 32

    /// The address that limits and logs use for the client.
    ///
    /// Each proxy appends the address of its peer to `X-Forwarded-For`, so the list is read from the end. Returns the
    /// first address that is not a trusted proxy's, or the last one read if all are. Without a list, returns `peer`.
    /// Returns `unknown` for an element that is not an address with an optional port, or after 32 trusted proxies.
    static func resolve(peer: String, forwarded: [String], proxies: [AddressRange]) -> String {
        guard isTrusted(peer, proxies) else { return peer }
        var client = peer
        var count = 0
        for value in forwarded.reversed() {
            var rest = value[...]
            while true {
                let comma = rest.lastIndex(of: ",")
                let text = trimmed(comma.map { rest[rest.index(after: $0)...] } ?? rest)
                // RFC 9110, section 5.6.1.2: empty elements are ignored.
                if !text.isEmpty {
                    count += 1
                    guard count <= mostProxies, let address = address(text) else { return unknown }
                    client = address
                    if !isTrusted(address, proxies) { return client }
                }
                guard let comma else { break }
                rest = rest[..<comma]
            }
        }
        return client
    }

    static func isTrusted(_ text: String, _ proxies: [AddressRange]) -> Bool {
        guard !proxies.isEmpty, let address = NetworkAddress(text) else { return false }
        return proxies.contains { $0.contains(address) }
    }

    /// Accepts `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`.
    private static func address(_ text: Substring) -> String? {
        var host = text
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<end]
            let behind = text[text.index(after: end)...]
            guard behind.isEmpty || isPort(behind), host.contains(":") else { return nil }
        } else if let colon = text.firstIndex(of: ":"), text.firstIndex(of: ".") ?? text.endIndex < colon {
            // Without brackets only an IPv4 address can be followed by a port.
            guard isPort(text[colon...]) else { return nil }
            host = text[..<colon]
        }
        return NetworkAddress(host) == nil ? nil : String(host)
    }

    private static func isPort(_ text: Substring) -> Bool {
        text.hasPrefix(":") && (2...6).contains(text.utf8.count)
            && text.utf8.dropFirst().allSatisfy(\.isASCIIDigit)
            && UInt16(text.dropFirst()) != nil
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.utf8.first, first == 0x20 || first == 0x09 {
            text = Substring(text.utf8.dropFirst())
        }
        while let last = text.utf8.last, last == 0x20 || last == 0x09 {
            text = Substring(text.utf8.dropLast())
        }
        return text
    }
}
