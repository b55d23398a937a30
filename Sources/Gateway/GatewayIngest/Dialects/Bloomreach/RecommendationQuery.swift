internal import CountersignCore
internal import CountersignJSON
internal import GatewayModel

/// What a client asks of a recommendation engine.
struct RecommendationQuery: Sendable {
    /// The most items that are answered.
    static let maximumSize = 100
    /// The most names of a whitelist that are looked at.
    private static let maximumNames = 200
    private static let longestName = 256

    let engineID: String
    /// How many items; 10 by default.
    let size: Int
    /// Whether the engine's `fill` makes up for what its `items` lack, in a random order.
    let fillsWithRandom: Bool
    /// The members of an item that are wanted besides those that clients require; nil for all.
    let whitelist: BytewiseSet?

    /// Nil when no engine is named.
    init?(_ node: JSONNode) {
        guard let id = node["id"], let text = Self.short(id) else { return nil }
        engineID = text
        size = Int(min(max(node["size"]?.int64 ?? 10, 0), Int64(Self.maximumSize)))
        fillsWithRandom = node["fillWithRandom"]?.bool ?? false
        let names = node["catalogAttributesWhitelist"].flatMap { $0.kind == .array ? $0 : nil }
        whitelist = names.map { BytewiseSet($0.elements.prefix(Self.maximumNames).compactMap(Self.short)) }
    }

    /// A name that may be looked up in a table.
    private static func short(_ node: JSONNode) -> String? {
        guard let utf8 = node.utf8, utf8.count <= longestName else { return nil }
        return String(decoding: utf8, as: UTF8.self)
    }

    /// The items, as clients decode them.
    func items(of engine: RecommendationEngine) -> JSONValue {
        var chosen = Array(engine.items.prefix(size))
        if fillsWithRandom, chosen.count < size {
            let taken = BytewiseSet(chosen.map(\.id))
            chosen += engine.fill.filter { !taken.contains($0.id) }.shuffled().prefix(size - chosen.count)
        }
        return .array(
            chosen.map { item in
                var members = item.members.filter { whitelist?.contains($0.key) ?? true }
                members["item_id"] = .string(item.id)
                members["engine_name"] = .string(engine.name)
                members["recommendation_id"] = .string(engine.id)
                members["recommendation_variant_id"] = engine.variantID.map { .string($0) } ?? .null
                return .object(members)
            })
    }
}

/// An engine as the operator wrote it: what it recommends, the best first, and what may fill up the rest.
struct RecommendationEngine: Sendable {
    struct Item: Sendable {
        let id: String
        let members: JSONObject
    }

    let id: String
    let name: String
    let variantID: String?
    let items: [Item]
    let fill: [Item]

    init(_ item: ProjectItem) {
        func text(_ value: JSONValue?) -> String? {
            if case .string(let text) = value { text } else { nil }
        }
        func list(_ name: String) -> [Item] {
            guard case .array(let elements) = item.members[name] else { return [] }
            return elements.compactMap { element in
                guard case .object(let members) = element, let id = text(members["item_id"]) else {
                    return nil
                }
                return Item(id: id, members: members)
            }
        }
        id = item.id
        name = text(item.members["name"]) ?? item.id
        variantID = text(item.members["variant_id"])
        items = list("items")
        fill = list("fill")
    }
}
