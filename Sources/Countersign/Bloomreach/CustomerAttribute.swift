public import CountersignCore

/// What to ask of a customer.
public enum CustomerAttributeQuery: Sendable, Hashable {
    /// A property of the profile.
    case property(String)
    /// An id of the profile.
    case id(String)
    /// What an engine recommends.
    case recommendation(RecommendationOptions)

    var json: JSONValue {
        switch self {
        case .property(let name): ["type": "property", "property": .string(name)]
        case .id(let name): ["type": "id", "id": .string(name)]
        case .recommendation(let options): options.json
        }
    }
}

/// What to ask of a recommendation engine.
public struct RecommendationOptions: Sendable, Hashable {
    /// Names the engine.
    public var id: String
    /// Whether other items make up for too few.
    public var fillWithRandom: Bool
    /// How many items. Default: 10.
    public var size: Int
    /// Items and their weights to go by instead of the customer's history; nil for the history.
    public var items: [String: String]?
    /// True to leave no trace in the customer's history.
    public var noTrack: Bool
    /// The members of an item that are wanted; nil for all.
    public var catalogAttributesWhitelist: [String]?

    /// Makes options.
    public init(
        id: String, fillWithRandom: Bool = false, size: Int = 10, items: [String: String]? = nil,
        noTrack: Bool = false, catalogAttributesWhitelist: [String]? = nil
    ) {
        self.id = id
        self.fillWithRandom = fillWithRandom
        self.size = size
        self.items = items
        self.noTrack = noTrack
        self.catalogAttributesWhitelist = catalogAttributesWhitelist
    }

    var json: JSONValue {
        var members: JSONObject = [
            "type": "recommendation", "id": .string(id), "fillWithRandom": .bool(fillWithRandom),
            "size": .integer(Int64(size)), "no_track": .bool(noTrack),
        ]
        if let items { members["items"] = .object(JSONObject(items.mapValues { .string($0) })) }
        if let catalogAttributesWhitelist {
            members["catalogAttributesWhitelist"] = .array(catalogAttributesWhitelist.map { .string($0) })
        }
        return .object(members)
    }
}

/// The answer to one `CustomerAttributeQuery`.
public struct CustomerAttribute: Sendable, Hashable {
    /// Whether this one was answered.
    public let isSuccess: Bool
    /// Why not; nil if it was, or if the server does not say.
    public let error: String?
    /// The value; `null` if there is none.
    public let value: JSONValue

    init(_ value: JSONValue) {
        isSuccess = value["success"]?.bool ?? false
        error = value["error"]?.string
        self.value = value["value"] ?? .null
    }
}

/// An item that an engine recommends. An item without an id is skipped.
public struct Recommendation: Sendable, Hashable {
    /// Names the item.
    public let itemID: String
    /// Names the engine.
    public let engineName: String
    /// Names the recommendation.
    public let recommendationID: String
    /// Names the variant; nil if there is none.
    public let variantID: String?
    /// The whole item, its catalog's members among them, as the server sent it.
    public let raw: JSONValue

    init?(_ value: JSONValue) {
        guard let id = value["item_id"]?.string else { return nil }
        itemID = id
        engineName = value["engine_name"]?.string ?? ""
        recommendationID = value["recommendation_id"]?.string ?? ""
        variantID = value["recommendation_variant_id"]?.string
        raw = value
    }
}
