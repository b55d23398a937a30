internal import CountersignCore
internal import Foundation

/// Checks whether browsers and web views can send an origin that an operator sets (RFC 6454, section 6.2).
package enum WebOrigin {
    private static let withoutOrigin = [
        "about", "blob", "data", "file", "filesystem", "ftp", "javascript", "mailto", "ws", "wss",
    ]

    /// The reason why no browser sends this origin; nil if a browser may send it.
    package static func fault(in text: String) -> String? {
        guard text.utf8.count <= 300, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return "an origin is ASCII without spaces: write another letter of the host as xn--"
        }
        guard text != "null" else { return "null is sent by pages of any site, so it cannot be allowed" }
        guard !text.contains("*") else {
            return "an origin is one host: name each subdomain, or allow every page with * alone"
        }
        guard let separator = text.range(of: "://") else { return "the scheme and :// are missing" }
        let scheme = text[..<separator.lowerBound]
        guard scheme.utf8.first.map({ 0x61...0x7A ~= $0 }) == true,
            scheme.utf8.allSatisfy({ 0x61...0x7A ~= $0 || $0.isASCIIDigit || "+-.".utf8.contains($0) })
        else { return "the scheme must be in lower case" }
        guard !withoutOrigin.contains(String(scheme)) else { return "pages of \(scheme): have no origin" }
        let rest = text[separator.upperBound...]
        guard !rest.contains(where: { "/?#@\\".contains($0) }) else {
            return "an origin has no path, no slash at the end, no query and no user name"
        }
        let (host, port) = parts(rest)
        guard !host.isEmpty else { return "the host is missing" }
        // WebKit and Chromium write hosts in lower case for every scheme.
        guard !host.utf8.contains(where: { 0x41...0x5A ~= $0 }) else {
            return "browsers send the host in lower case"
        }
        let isWeb = scheme == "https" || scheme == "http"
        if let port {
            guard let number = UInt16(port), number > 0, String(number) == port else {
                return "the port must be a number from 1 to 65535 without a 0 before it"
            }
            guard !isWeb || number != (scheme == "https" ? 443 : 80) else {
                return "browsers leave out the port \(port) of \(scheme)"
            }
        }
        if isWeb, host.hasPrefix("[") {
            return isAddress(host) ? nil : "the IPv6 address is not in its shortest form"
        }
        // Electron apps may have the host `.`, as in `app://.`.
        return !isWeb && host == "." ? nil : fault(inName: host) ?? (isWeb ? fault(inNumbers: host) : nil)
    }

    private static func parts(_ text: Substring) -> (host: Substring, port: Substring?) {
        let end = text.lastIndex(of: "]") ?? text.startIndex
        guard let colon = text[end...].lastIndex(of: ":") else { return (text, nil) }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    /// Checks a host name (RFC 1123, section 2.1), in which browsers also accept `_`.
    private static func fault(inName host: Substring) -> String? {
        // Browsers preserve one dot at the end of a host.
        let name = host.hasSuffix(".") ? host.dropLast() : host
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        guard name.utf8.count <= 253, labels.allSatisfy({ isLabel($0) }) else {
            return
                "the host must be a name of at most 253 bytes; each part has 1 to 63 letters, digits, - and _, "
                + "and neither begins nor ends with -"
        }
        return nil
    }

    private static func isLabel(_ text: Substring) -> Bool {
        1...63 ~= text.utf8.count && text.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_") }
            && !text.hasPrefix("-") && !text.hasSuffix("-")
    }

    /// Checks a host whose last label is numeric. Browsers parse such a host as an IPv4 address and send it
    /// as four numbers.
    private static func fault(inNumbers host: Substring) -> String? {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        let last = (host.hasSuffix(".") ? labels.dropLast() : labels[...]).last ?? ""
        let isNumber =
            last.utf8.allSatisfy(\.isASCIIDigit)
            || last.hasPrefix("0x")
                && last.utf8.dropFirst(2).allSatisfy { $0.isASCIIDigit || 0x61...0x66 ~= $0 }
        guard isNumber else { return nil }
        let isIPv4 = labels.count == 4 && labels.allSatisfy { UInt8($0).map { String($0) } ?? "" == $0 }
        return isIPv4 ? nil : "the IPv4 address must be four numbers from 0 to 255"
    }

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
