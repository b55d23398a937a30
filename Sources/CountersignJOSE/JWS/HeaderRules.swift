/// What a JOSE header must not say, whoever signed it. Everything else in it is ignored: `jku`, `jwk`, `x5u`
/// and `x5c` never choose a key and are never fetched (RFC 8725, section 3.10).
enum HeaderRules {
    /// Every problem of a parsed header, in words; empty for nearly all tokens.
    static func problems(of header: JSONNode) -> [String] {
        guard header.kind == .object else { return ["the header is not a JSON object"] }
        var problems: [String] = []
        // We understand no extension, so a token that needs one is refused (RFC 7515, section 4.1.11).
        if header["crit"] != nil { problems.append("the header has crit") }
        if let b64 = header["b64"], b64.bool != true {
            problems.append("the header turns base64url off (b64)")
        }
        if let type = header["typ"], !isJWT(type) { problems.append("the header's typ is not JWT") }
        return problems
    }

    /// Media types are compared without regard to case, with or without `application/` (RFC 7515, section
    /// 4.1.9).
    private static func isJWT(_ type: JSONNode) -> Bool {
        guard let text = type.utf8 else { return false }
        let lower = text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        return lower == Array("jwt".utf8) || lower == Array("application/jwt".utf8)
    }
}
