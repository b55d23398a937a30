internal import CountersignCore
internal import CountersignJSON

/// The registered claims of a token with a valid signature (RFC 7519, section 4.1).
final class Claims: Sendable {
    enum Value<Wrapped: Sendable>: Sendable {
        case absent
        case malformed
        case value(Wrapped)

        var value: Wrapped? {
            if case .value(let wrapped) = self { wrapped } else { nil }
        }
    }

    let expiresAt: Value<Double>
    let notBefore: Value<Double>
    let issuedAt: Value<Double>
    /// The claim that names the user: `sub`, unless the policy chooses another one.
    let subject: Value<String>
    let issuer: Value<String>
    /// Nil if it is not a string.
    let tokenID: String?
    let audience: Value<[String]>
    /// The claims listed in the policy's `keptClaims`, as a JSON object; nil if all are omitted.
    let kept: String?
    let json: [UInt8]

    init(
        _ root: JSONNode, json: UnsafeRawBufferPointer, userClaim: String = "sub",
        keeping names: [String] = []
    ) {
        expiresAt = Self.number(root["exp"], nullIsAbsent: true)
        notBefore = Self.number(root["nbf"])
        issuedAt = Self.number(root["iat"])
        subject = Self.text(root[named: userClaim], nullIsAbsent: true)
        issuer = Self.text(root["iss"])
        tokenID = Self.text(root["jti"]).value
        audience = Self.texts(root["aud"])
        kept = names.isEmpty ? nil : Self.kept(names, of: root)
        self.json = Array(json)
    }

    static func isNoString(_ claim: String) -> String { "\(claim) is not a string" }

    func problems(userClaim: String) -> [String] {
        var problems: [String] = []
        if case .malformed = expiresAt { problems.append("exp is not a number") }
        if case .malformed = notBefore { problems.append("nbf is not a number") }
        if case .malformed = issuedAt { problems.append("iat is not a number") }
        if case .malformed = subject { problems.append(Self.isNoString(userClaim)) }
        if case .malformed = issuer { problems.append(Self.isNoString("iss")) }
        if case .malformed = audience { problems.append("aud is not a string or an array of strings") }
        return problems
    }

    private static let longestKept = 256

    /// Omits missing claims, null, arrays, objects, long strings and numbers that may be inexact.
    private static func kept(_ names: [String], of root: JSONNode) -> String? {
        var kept: JSONObject = [:]
        for name in names {
            guard let node = root[named: name] else { continue }
            switch node.kind {
            case .bool: kept[name] = node.value
            case .number: kept[name] = ClaimsPolicy.kept(number: node.value)
            case .string where node.utf8.map({ $0.count <= longestKept }) == true: kept[name] = node.value
            case .string, .null, .array, .object: continue
            }
        }
        return kept.isEmpty ? nil : String(decoding: JSONValue.object(kept).bytes, as: UTF8.self)
    }

    private static func number(_ node: JSONNode?, nullIsAbsent: Bool = false) -> Value<Double> {
        guard let node, !(nullIsAbsent && node.isNull) else { return .absent }
        guard let number = node.double else { return .malformed }
        return .value(number)
    }

    private static func text(_ node: JSONNode?, nullIsAbsent: Bool = false) -> Value<String> {
        guard let node, !(nullIsAbsent && node.isNull) else { return .absent }
        guard let text = node.string else { return .malformed }
        return .value(text)
    }

    private static func texts(_ node: JSONNode?) -> Value<[String]> {
        guard let node else { return .absent }
        guard node.kind == .array else { return node.string.map { .value([$0]) } ?? .malformed }
        var texts: [String] = []
        for element in node.elements {
            guard let text = element.string else { return .malformed }
            texts.append(text)
        }
        return .value(texts)
    }
}
