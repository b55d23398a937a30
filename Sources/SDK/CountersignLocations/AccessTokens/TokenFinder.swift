internal import CountersignCore
internal import Foundation

/// Finds the tokens in the response of an authorization server, under common names at any path.
///
/// Every key is ranked, and the best one wins, in any order of the keys. Arrays are searched only if there is no
/// access token outside of them, because they often list older tokens or tokens of other devices.
struct TokenFinder {
    struct Grant: Equatable {
        var accessToken: String
        /// Nil keeps the present refresh token.
        var refreshToken: String?
        var expiry: Expiry?
    }

    private static let maximumDepth = 8

    private struct Leaf {
        let path: [Step]
        let value: JSONValue
        /// The last two names, in lower case, only letters and digits. `key` is empty for an element of an array.
        let key: String
        let parent: String
        let isInArray: Bool

        init(path: [Step], value: JSONValue) {
            self.path = path
            self.value = value
            let names = path.dropLast().compactMap(\.name)
            key = TokenFinder.normalized(path.last?.name ?? "")
            parent = TokenFinder.normalized(names.last ?? "")
            isInArray = names.count < path.count - 1
        }
    }

    private enum Step: Hashable, Comparable {
        case element(Int)
        case member(String)

        var name: String? {
            if case .member(let name) = self { name } else { nil }
        }
    }

    let configuration: AuthorizationConfiguration

    /// Nil without an access token.
    func grant(in response: JSONObject) -> Grant? {
        var leaves: [Leaf] = []
        collect(.object(response), path: [], into: &leaves)
        let outsideArrays = leaves.filter { !$0.isInArray }
        func access(_ candidates: [Leaf]) -> (leaf: Leaf, value: String)? {
            best(candidates, of: leaves, mapped: "accessToken", rank: Self.accessRank) { leaf in
                token(leaf.value)
            }
        }
        guard let access = access(outsideArrays) ?? access(leaves) else { return nil }
        let candidates = access.leaf.isInArray ? leaves : outsideArrays
        func sibling(_ leaf: Leaf) -> Bool { leaf.path.dropLast() == access.leaf.path.dropLast() }
        let refresh = best(
            candidates, of: leaves, mapped: "refreshToken", near: sibling, rank: Self.refreshRank
        ) { leaf in Self.refreshToken(leaf.value) }
        let expiry = best(candidates, of: leaves, mapped: "expires", near: sibling, rank: Self.expiryRank) {
            leaf in Expiry(leaf.value, unit: configuration.expiresUnit)
        }
        return Grant(accessToken: access.value, refreshToken: refresh?.value, expiry: expiry?.value)
    }

    private func collect(_ value: JSONValue, path: [Step], into leaves: inout [Leaf]) {
        switch value {
        case .object(let members):
            guard path.count < Self.maximumDepth else { return }
            for (name, member) in members { collect(member, path: path + [.member(name)], into: &leaves) }
        case .array(let elements):
            guard path.count < Self.maximumDepth else { return }
            for (index, element) in elements.enumerated() {
                collect(element, path: path + [.element(index)], into: &leaves)
            }
        default: leaves.append(Leaf(path: path, value: value))
        }
    }

    /// Returns the leaf that `responseMapping` names, or the candidate with the lowest rank. Among equal ranks, prefers
    /// a shorter path, then a leaf in the access token's object, then the first path in lexicographic order.
    private func best<Value>(
        _ candidates: [Leaf], of leaves: [Leaf], mapped name: String, near: (Leaf) -> Bool = { _ in false },
        rank: (Leaf) -> Int?, value: (Leaf) -> Value?
    ) -> (leaf: Leaf, value: Value)? {
        if let path = configuration.responseMapping[name].map(Self.path) {
            return leaves.first { $0.path == path }.flatMap { leaf in value(leaf).map { (leaf, $0) } }
        }
        var winner: (leaf: Leaf, value: Value, order: (Int, Int, Int))?
        for leaf in candidates {
            guard let rank = rank(leaf), let value = value(leaf) else { continue }
            let order = (rank, leaf.path.count, near(leaf) ? 0 : 1)
            if let current = winner {
                if order > current.order { continue }
                if order == current.order, !leaf.path.lexicographicallyPrecedes(current.leaf.path) {
                    continue
                }
            }
            winner = (leaf, value, order)
        }
        return winner.map { ($0.leaf, $0.value) }
    }

    /// `$.data.tokens[0].token` as steps.
    private static func path(_ text: String) -> [Step] {
        let names = text.split(separator: ".").map(String.init)
        return (names.first == "$" ? Array(names.dropFirst()) : names).flatMap { name -> [Step] in
            let parts = name.split(separator: "[").map(String.init)
            guard name.hasSuffix("]"), parts.count > 1 else { return [.member(name)] }
            let elements = parts.dropFirst().map { Int($0.dropLast()).map(Step.element) }
            guard !elements.contains(nil) else { return [.member(name)] }
            return [.member(parts[0])] + elements.compactMap(\.self)
        }
    }

    private static func normalized(_ name: String) -> String {
        String(decoding: name.lowercased().utf8.filter { $0.isASCIIAlphanumeric() }, as: UTF8.self)
    }

    /// Nil if it is invalid in a header field.
    private func token(_ value: JSONValue) -> String? {
        guard case .string(let text) = value,
            SignedToken.accessToken(text, strategy: configuration.strategy) != nil
        else { return nil }
        return text
    }

    /// Nil unless it is `1*VSCHAR` (RFC 6749, appendix A.17). Nil for a link, such as `links.refresh`.
    private static func refreshToken(_ value: JSONValue) -> String? {
        guard case .string(let text) = value, !text.isEmpty,
            text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), URL(server: text) == nil
        else { return nil }
        return text
    }

    // MARK: Ranks, 1 being the best

    private static func accessRank(_ leaf: Leaf) -> Int? {
        if ["token", "value", "jwt"].contains(leaf.key), !leaf.parent.isEmpty {
            if containsAny(leaf.parent, ["refresh", "renew"]) { return nil }
            switch accessRank(ofKey: leaf.parent) {
            case 5: return 5
            case .some: return 3
            case nil where containsAny(leaf.parent, ["access", "auth"]) && !isExcluded(leaf.parent): return 3
            case nil: break
            }
        }
        return accessRank(ofKey: leaf.key)
    }

    private static func accessRank(ofKey key: String) -> Int? {
        if isExcluded(key) { return nil }
        switch key {
        case "accesstoken": return 1
        case "access", "jwt", "bearertoken", "authtoken", "authorizationtoken": return 2
        case "token": return 3
        case "idtoken": return 5
        default:
            return containsAny(key, ["access", "auth"]) && containsAny(key, ["token", "jwt"]) ? 4 : nil
        }
    }

    private static func isExcluded(_ key: String) -> Bool {
        containsAny(key, ["refresh", "renew", "expir", "type", "scope"])
            || ["id", "url", "uri", "endpoint", "hash", "ttl"].contains { key.hasSuffix($0) }
    }

    private static func refreshRank(_ leaf: Leaf) -> Int? {
        var key = leaf.key
        if ["token", "value", "jwt"].contains(key), containsAny(leaf.parent, ["refresh", "renew"]) {
            key = leaf.parent
        }
        switch key {
        case "refreshtoken": return 1
        case "renewaltoken", "renewtoken": return 2
        case "refresh", "renew", "renewal": return 3
        default: return nil
        }
    }

    private static func expiryRank(_ leaf: Leaf) -> Int? {
        if containsAny(leaf.key, ["refresh", "renew", "session"]) { return nil }
        if containsAny(leaf.parent, ["refresh", "renew"]) { return nil }
        let exact = ["expiresin", "expiresat", "expires", "expiry", "expiration", "exp"]
        if let index = exact.firstIndex(of: leaf.key) { return index + 1 }
        if leaf.key.hasPrefix("accesstokenexp") { return exact.count + 1 }
        return leaf.key.hasPrefix("tokenexp") ? exact.count + 2 : nil
    }

    private static func containsAny(_ key: String, _ parts: [String]) -> Bool {
        parts.contains { key.contains($0) }
    }
}
