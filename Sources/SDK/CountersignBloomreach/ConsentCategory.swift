public import CountersignCore

/// A consent category of a project.
///
/// Missing members have defaults, and `raw` has the whole category. A category without an ID is skipped.
public struct ConsentCategory: Sendable, Hashable {
    /// The name and description in one language.
    public struct Translation: Sendable, Hashable {
        /// The name; nil if missing in this language.
        public let name: String?
        /// The description.
        public let text: String?
    }

    /// The category's ID.
    public let id: String
    /// Whether the category needs no consent.
    public let hasLegitimateInterest: Bool
    /// Possible sources of consent, such as `crm`, `import`, `page`, `private_api`, `public_api` and `scenario`.
    public let sources: [String: Bool]
    /// Translations by language, such as `en`; the empty key is the project's default.
    public let translations: [String: Translation]
    /// The whole category as the server sent it.
    public let raw: JSONValue

    init?(_ value: JSONValue) {
        guard let id = value["id"]?.string, !id.isEmpty else { return nil }
        self.id = id
        hasLegitimateInterest = value["legitimate_interest"]?.bool ?? false
        sources = Dictionary(value["sources"]?.object?.compactMapValues(\.bool) ?? [:])
        translations = Dictionary(
            (value["translations"]?.object ?? [:]).mapValues {
                Translation(name: $0["name"]?.string, text: $0["description"]?.string)
            })
        raw = value
    }
}
