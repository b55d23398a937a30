internal import CountersignCore
internal import CountersignCrypto
internal import Foundation

package enum OutgoingURL {
    /// Rejects URLs that the gateway does not request. Throws `invalid` for the member `url`.
    ///
    /// `takesPlainHTTP` allows `http` to this machine, if private addresses are allowed. `OutboundRequest` checks
    /// the address again on connecting, because a name may resolve to another address by then.
    static func check(
        _ url: String, allowsPrivateAddresses: Bool, takesPlainHTTP: Bool
    ) throws(GatewayError) {
        func reject(_ reason: String) throws(GatewayError) {
            throw GatewayError(.invalid, reason, member: "url")
        }
        guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased(),
            let host = parts.host?.lowercased().trimmingCharacters(in: ["[", "]"]), !host.isEmpty
        else { return try reject("the address must be a URL such as https://example.com/in") }
        // A URL from the clipboard may contain spaces, which `URLComponents` accepts. A request to it would fail.
        if url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
            try reject("the URL must have no spaces; write a space in it as %20")
        }
        if parts.user != nil || parts.password != nil || parts.fragment != nil {
            try reject("the address must have no user name, no password and no fragment")
        }
        if !parts.hasUsablePort { try reject("the address must have a port from 1 to 65535, or none") }
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let isOwnName = name == "localhost" || name.hasSuffix(".localhost")
        let address =
            isOwnName ? NetworkAddress("127.0.0.1") : NetworkAddress(host) ?? NetworkAddress(numbers: name)
        let port = parts.port ?? (scheme == "http" ? 80 : 443)
        if let address,
            let rejection = PrivateAddressGuard.rejection(
                of: address, port: UInt16(clamping: port), allowsPrivateAddresses: allowsPrivateAddresses)
        {
            try reject(rejection)
        }
        if !URLComponents.hasASCIIHost(url) {
            try reject("the address must name its host in ASCII; other letters are written as xn--")
        }
        if !allowsPrivateAddresses,
            let rejection = PrivateAddressGuard.rejection(ofPort: UInt16(clamping: port))
        {
            try reject(rejection)
        }
        let isOwn =
            address.map { address in AddressRange.loopback.contains { $0.contains(address) } } ?? false
        guard scheme == "https" || (scheme == "http" && takesPlainHTTP && isOwn) else {
            return try reject(
                takesPlainHTTP
                    ? "the address must begin with https://; only an address of this machine may begin with http://"
                    : "the address must begin with https://")
        }
    }
}

extension OutgoingURL {
    /// The URL for the audit log and viewers: an origin as it is; otherwise the origin and the first digits
    /// of the URL's SHA-256, such as `https://hooks.example/…#1a2b3c4d`.
    package static func audited(_ url: String) -> String {
        guard let authority = url.range(of: "://")?.upperBound else { return url.isEmpty ? "" : "…" }
        let end = url[authority...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        if end == url.endIndex || url[end...] == "/" { return url }
        return String(url[..<end]) + "/…#" + Array(SHA256.digest(url).prefix(4)).hexadecimal
    }
}

extension URLComponents {
    var hasUsablePort: Bool {
        guard let string, let range = rangeOfPort else { return true }
        return range.isEmpty || UInt16(string[range]) ?? 0 > 0
    }

    /// Whether the host is ASCII, with other letters as `xn--` (RFC 5890). `URLComponents.host` decodes `xn--`.
    static func hasASCIIHost(_ url: String) -> Bool {
        url.utf8.drop { $0 != UInt8(ascii: ":") }.dropFirst("://".count).prefix { !"/?#".utf8.contains($0) }
            .allSatisfy { $0 < 0x80 }
    }
}
