internal import CountersignJSON

/// The rules of a JOSE header, checked before the signature. Other members are ignored: `jku`, `jwk`, `x5u` and
/// `x5c` never choose a key and are never fetched (RFC 8725, section 3.10).
enum HeaderRules {
    /// The problems of a parsed header; empty for nearly all tokens.
    static func problems(of header: JSONNode, types: [StaticString]) -> [String] {
        guard header.kind == .object else { return ["the header is not a JSON object"] }
        var problems: [String] = []
        // No extensions are supported, so a token that requires one is rejected (RFC 7515, section 4.1.11).
        if header["crit"] != nil { problems.append("the header has crit") }
        if let b64 = header["b64"], b64.bool != true {
            problems.append("the header turns base64url off (b64)")
        }
        if let type = header["typ"], !types.contains(where: { names(type, $0) }) {
            problems.append("the header's typ is not \(types.first.map(String.init(describing:)) ?? "")")
        }
        return problems
    }

    /// Media types are compared without ASCII case, with or without `application/` (RFC 7515, section 4.1.9).
    private static func names(_ type: JSONNode, _ expected: StaticString) -> Bool {
        guard let text = type.utf8 else { return false }
        var lower = text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }[...]
        if lower.starts(with: "application/".utf8) { lower = lower.dropFirst("application/".utf8.count) }
        return expected.withUTF8Buffer { lower.elementsEqual($0) }
    }
}
