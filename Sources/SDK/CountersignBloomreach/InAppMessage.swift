public import CountersignCore
public import Foundation

/// An in-app message, and when it is to be shown.
///
/// Read leniently: all that a server leaves out has a default, and `raw` has everything as it came. A message without an id
/// is skipped.
public struct InAppMessage: Sendable, Hashable {
    /// Names the message.
    public let id: String
    /// What its author calls it.
    public let name: String
    /// `modal`, `alert`, `fullscreen`, `slide_in`, `freeform`, or a word of a newer server; nil if there is none.
    public let messageType: String?
    /// `always`, `only_once`, `once_per_visit`, `until_visitor_interacts`, or a word of a newer server. Default: `always`.
    public let frequency: String
    /// The event that shows it; nil for none.
    public let triggerEventType: String?
    /// What it shows when it is no HTML.
    public let payload: JSONObject?
    /// What it shows when it is HTML.
    public let payloadHTML: String?
    /// Whether it is HTML.
    public let isHTML: Bool
    /// -1 for the control group, to which nothing is shown.
    public let variantID: Int
    /// What its author calls the variant.
    public let variantName: String
    /// From when it is shown; nil for always, also when the filter is off.
    public let from: Date?
    /// Until when it is shown; nil forever, also when the filter is off.
    public let until: Date?
    /// The higher one is shown first; nil stands for the lowest.
    public let priority: Int?
    /// Seconds from the event until it is shown.
    public let delay: TimeInterval
    /// Seconds after which it closes on its own; nil for never.
    public let closeTimeout: TimeInterval?
    /// Whether what is done with it may be tracked. Default: true.
    public let hasTrackingConsent: Bool
    /// The category of consent that tracking needs; nil for none.
    public let consentCategory: String?
    /// The whole message as the server sent it.
    public let raw: JSONValue

    init?(_ value: JSONValue) {
        guard let id = value["id"]?.string, !id.isEmpty else { return nil }
        self.id = id
        name = value["name"]?.string ?? ""
        messageType = value["message_type"]?.string
        frequency = value["frequency"]?.string ?? "always"
        triggerEventType = value["trigger"]?["event_type"]?.string
        payload = value["payload"]?.object
        payloadHTML = value["payload_html"]?.string
        isHTML = value["is_html"]?.bool ?? false
        variantID = Int(value["variant_id"]?.integer ?? 0)
        variantName = value["variant_name"]?.string ?? ""
        let filter = value["date_filter"].flatMap { $0["enabled"]?.bool == true ? $0 : nil }
        from = filter?["from_date"]?.numeric.map(Date.init(timeIntervalSince1970:))
        until = filter?["to_date"]?.numeric.map(Date.init(timeIntervalSince1970:))
        priority = value["load_priority"]?.integer.map(Int.init)
        delay = Milliseconds(value["load_delay"]?.numeric ?? 0).seconds
        closeTimeout = value["close_timeout"]?.numeric.map { Milliseconds($0).seconds }
        hasTrackingConsent = value["has_tracking_consent"]?.bool ?? true
        consentCategory = value["consent_category_tracking"]?.string
        raw = value
    }
}
