internal import CountersignCore
internal import Foundation

/// Finds the tokens in the answer of an authorization server, whatever they are called and wherever they stand.
///
/// Every key is ranked, and the best one wins; the order of the keys has no part in it. Arrays are passed over.
struct TokenFinder {
    /// What an answer grants.
    struct Grant: Equatable {
        var accessToken: String
        /// Nil: the present one stays.
        var refreshToken: String?
        var expiry: Expiry?
    }

    /// Objects that are nested more deeply are not searched.
    private static let maximumDepth = 8

    private struct Leaf {
        let path: [String]
        let value: JSONValue
        /// The names, in lower case and without anything that is not a letter or a digit.
        let key: String
        let parent: String

        init(path: [String], value: JSONValue) {
            self.path = path
            self.value = value
            let names = path.map(TokenFinder.normalized)
            key = names.last ?? ""
            parent = names.dropLast().last ?? ""
        }
    }

    let configuration: AuthorizationConfiguration

    /// Returns nil if there is no access token in it.
    func grant(in response: JSONObject) -> Grant? {
        var leaves: [Leaf] = []
        collect(response, path: [], into: &leaves)
        let access = best(leaves, mapped: "accessToken", rank: Self.accessRank) { leaf in
            token(leaf.value)
        }
        guard let access else { return nil }
        func sibling(_ leaf: Leaf) -> Bool { leaf.path.dropLast() == access.leaf.path.dropLast() }
        let refresh = best(leaves, mapped: "refreshToken", near: sibling, rank: Self.refreshRank) { leaf in
            token(leaf.value)
        }
        let expiry = best(leaves, mapped: "expires", near: sibling, rank: Self.expiryRank) { leaf in
            Expiry(leaf.value, unit: configuration.expiresUnit)
        }
        return Grant(accessToken: access.value, refreshToken: refresh?.value, expiry: expiry?.value)
    }

    private func collect(_ object: JSONObject, path: [String], into leaves: inout [Leaf]) {
        guard path.count < Self.maximumDepth else { return }
        for (name, value) in object {
            switch value {
            case .object(let members): collect(members, path: path + [name], into: &leaves)
            case .array: continue
            default: leaves.append(Leaf(path: path + [name], value: value))
            }
        }
    }

    /// The leaf with the lowest rank; of several, the least deep, then one beside the access token, then the first path.
    private func best<Value>(
        _ leaves: [Leaf], mapped name: String, near: (Leaf) -> Bool = { _ in false },
        rank: (Leaf) -> Int?, value: (Leaf) -> Value?
    ) -> (leaf: Leaf, value: Value)? {
        if let path = configuration.responseMapping[name].map(Self.path) {
            return leaves.first { $0.path == path }.flatMap { leaf in value(leaf).map { (leaf, $0) } }
        }
        var winner: (leaf: Leaf, value: Value, order: (Int, Int, Int))?
        for leaf in leaves {
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

    /// `$.data.token` as names.
    private static func path(_ text: String) -> [String] {
        let names = text.split(separator: ".").map(String.init)
        return names.first == "$" ? Array(names.dropFirst()) : names
    }

    private static func normalized(_ name: String) -> String {
        String(decoding: name.lowercased().utf8.filter { $0.isASCIIAlphanumeric() }, as: UTF8.self)
    }

    /// A token that can stand in a header field; nil for anything else.
    private func token(_ value: JSONValue) -> String? {
        guard case .string(let text) = value,
            SignedToken.accessToken(text, strategy: configuration.strategy) != nil
        else { return nil }
        return text
    }

    // MARK: Ranks, 1 being the best

    private static func accessRank(_ leaf: Leaf) -> Int? {
        if ["token", "value", "jwt"].contains(leaf.key), !leaf.parent.isEmpty {
            if containsAny(leaf.parent, ["refresh", "renew"]) { return nil }
            switch accessRank(ofKey: leaf.parent) {
            case 4: return 4
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
        case "idtoken": return 4
        default:
            return containsAny(key, ["access", "auth"]) && containsAny(key, ["token", "jwt"]) ? 5 : nil
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
