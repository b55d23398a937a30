public import CountersignCore

/// A category of consent that a project has.
///
/// Read leniently: all that a server leaves out has a default, and `raw` has everything as it came. A category without an
/// id is skipped.
public struct ConsentCategory: Sendable, Hashable {
    /// What it is called in one language.
    public struct Translation: Sendable, Hashable {
        /// Its name; nil if there is none in this language.
        public let name: String?
        /// What it means.
        public let text: String?
    }

    /// Names the category.
    public let id: String
    /// Whether it needs no consent.
    public let hasLegitimateInterest: Bool
    /// Where consents may come from, such as `crm`, `import`, `page`, `private_api`, `public_api` and `scenario`.
    public let sources: [String: Bool]
    /// By language, such as `en`; the empty text stands for the project's own.
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
