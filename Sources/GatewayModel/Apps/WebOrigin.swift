internal import CountersignCore
internal import Foundation

/// Validates the `Origin` header that browsers and web views send (RFC 6454, section 6.2).
enum WebOrigin {
    /// Schemes whose pages have an opaque origin or send no requests.
    private static let withoutOrigin = [
        "about", "blob", "data", "file", "filesystem", "ftp", "javascript", "mailto", "ws", "wss",
    ]

    /// Why no browser sends this origin; nil if a browser may send it.
    static func fault(in text: String) -> String? {
        guard text.utf8.count <= 300, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return "an origin is ASCII without spaces: write another letter of the host as xn--"
        }
        guard text != "null" else { return "null is sent by pages of any site, so it cannot be allowed" }
        guard !text.contains("*") else {
            return "an origin is one host: name each subdomain, or allow every page with * alone"
        }
        guard let mark = text.range(of: "://") else { return "the scheme and :// are missing" }
        let scheme = text[..<mark.lowerBound]
        guard scheme.utf8.first.map({ 0x61...0x7A ~= $0 }) == true,
            scheme.utf8.allSatisfy({ 0x61...0x7A ~= $0 || $0.isASCIIDigit || "+-.".utf8.contains($0) })
        else { return "the scheme must be in lower case" }
        guard !withoutOrigin.contains(String(scheme)) else { return "pages of \(scheme): have no origin" }
        let rest = text[mark.upperBound...]
        guard !rest.contains(where: { "/?#@\\".contains($0) }) else {
            return "an origin has no path, no slash at the end, no query and no user name"
        }
        let (host, port) = parts(rest)
        guard !host.isEmpty else { return "the host is missing" }
        let isWeb = scheme == "https" || scheme == "http"
        if let port {
            guard let number = UInt16(port), number > 0, String(number) == port else {
                return "the port must be a number from 1 to 65535 without a 0 before it"
            }
            guard !isWeb || number != (scheme == "https" ? 443 : 80) else {
                return "browsers leave out the port \(port) of \(scheme)"
            }
        }
        return isWeb ? fault(inHost: host) : fault(inName: host)
    }

    /// Splits into the host and the port after the last colon outside brackets.
    private static func parts(_ text: Substring) -> (host: Substring, port: Substring?) {
        let end = text.lastIndex(of: "]") ?? text.startIndex
        guard let colon = text[end...].lastIndex(of: ":") else { return (text, nil) }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    /// Checks the host of a web page against the URL standard's form.
    private static func fault(inHost host: Substring) -> String? {
        if host.hasPrefix("[") {
            return isAddress(host) ? nil : "the IPv6 address is not in its shortest form"
        }
        guard host == host.lowercased() else { return "browsers send the host in lower case" }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        // Browsers preserve one dot at the end.
        let named = labels.count > 1 && labels.last?.isEmpty == true ? labels.dropLast() : labels[...]
        guard host.utf8.count <= 254, named.allSatisfy({ isLabel($0) }) else {
            return "the host must be a name whose parts have 1 to 63 letters, digits, - and _"
        }
        // A host whose last part is a number must be an IPv4 address.
        guard let last = named.last, last.utf8.allSatisfy(\.isASCIIDigit) || last.hasPrefix("0x") else {
            return nil
        }
        let isIPv4 = labels.count == 4 && labels.allSatisfy { UInt8($0).map { String($0) } ?? "" == $0 }
        return isIPv4 ? nil : "the IPv4 address must be four numbers from 0 to 255"
    }

    private static func isLabel(_ text: Substring) -> Bool {
        1...63 ~= text.utf8.count && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_") }
    }

    /// Checks the host of another scheme, such as an extension's id. Browsers do not normalize it.
    private static func fault(inName host: Substring) -> String? {
        let isName =
            host.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_.") } && !host.contains("..")
        return isName ? nil : "the host must be letters, digits, -, _ and single dots"
    }

    /// Whether an address in brackets has the form that browsers send.
    private static func isAddress(_ text: Substring) -> Bool {
        guard text.hasSuffix("]") else { return false }
        let inner = String(text.dropFirst().dropLast())
        var address = in6_addr()
        guard inet_pton(AF_INET6, inner, &address) == 1 else { return false }
        var canonical = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, &address, &canonical, socklen_t(canonical.count)) != nil else {
            return false
        }
        // Browsers write the last part of an IPv4-mapped IPv6 address in hexadecimal; `inet_ntop` does not.
        let written = String(
            decoding: canonical.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return written.contains(".") ? !inner.contains(".") && inner == inner.lowercased() : written == inner
    }
}
