internal import CountersignJSON

/// The rules for `crit`, `b64` and `typ` in a JOSE header, checked before the signature. `jku`, `jwk`, `x5u` and
/// `x5c` are ignored: they never choose a key and are never fetched (RFC 8725, section 3.10).
enum HeaderRules {
    /// The problems of a parsed header; empty for nearly all tokens. `types` are the accepted values of `typ`,
    /// as ``mediaType(_:)`` returns them.
    static func problems(of header: JSONNode, types: [[UInt8]]) -> [String] {
        guard header.kind == .object else { return ["the header is not a JSON object"] }
        var problems: [String] = []
        // No extensions are supported, so a token that requires one is rejected (RFC 7515, section 4.1.11).
        if header["crit"] != nil { problems.append("the header has crit") }
        if let b64 = header["b64"], b64.bool != true {
            problems.append("the header turns base64url off (b64)")
        }
        if let type = header["typ"], !(type.utf8.map { types.contains(mediaType($0)) } ?? false) {
            let names = types.map { String(decoding: $0, as: UTF8.self) }
            problems.append("the header's typ is not \(names.joined(separator: " or "))")
        }
        return problems
    }

    /// Media types are compared without ASCII case, with or without `application/` (RFC 7515, section 4.1.9).
    static func mediaType(_ text: some Sequence<UInt8>) -> [UInt8] {
        let lower = text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        let prefix = "application/".utf8
        return lower.starts(with: prefix) ? Array(lower.dropFirst(prefix.count)) : lower
    }
}
