public import CountersignCore
public import Foundation

/// An in-app message and its display conditions.
///
/// Missing members have defaults, and `raw` has the whole message. A message without an ID is skipped.
public struct InAppMessage: Sendable, Hashable {
    /// The message's ID.
    public let id: String
    /// The message's name.
    public let name: String
    /// `modal`, `alert`, `fullscreen`, `slide_in`, `freeform`, or a type of a newer server; nil if missing.
    public let messageType: String?
    /// `always` (the default), `only_once`, `once_per_visit`, `until_visitor_interacts`, or a newer server's value.
    public let frequency: String
    /// The event type that triggers the message; nil without a trigger.
    public let triggerEventType: String?
    /// The content of a message that is not HTML.
    public let payload: JSONObject?
    /// The content of an HTML message.
    public let payloadHTML: String?
    /// Whether the message is HTML.
    public let isHTML: Bool
    /// The variant's ID; -1 for the control group, which sees no message.
    public let variantID: Int
    /// The variant's name.
    public let variantName: String
    /// Start of the display period; nil for no start or a disabled date filter.
    public let from: Date?
    /// End of the display period; nil for no end or a disabled date filter.
    public let until: Date?
    /// Higher values are shown first; nil is the lowest priority.
    public let priority: Int?
    /// Seconds between the event and the display.
    public let delay: TimeInterval
    /// Seconds after which the message closes automatically; nil for never.
    public let closeTimeout: TimeInterval?
    /// Whether interactions may be tracked. Default: true.
    public let hasTrackingConsent: Bool
    /// The consent category required for tracking; nil if not required.
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
        variantID = value["variant_id"]?.int ?? 0
        variantName = value["variant_name"]?.string ?? ""
        let filter = value["date_filter"].flatMap { $0["enabled"]?.bool == true ? $0 : nil }
        from = filter?["from_date"]?.numeric.map(Date.init(timeIntervalSince1970:))
        until = filter?["to_date"]?.numeric.map(Date.init(timeIntervalSince1970:))
        priority = value["load_priority"]?.int
        delay = Milliseconds(value["load_delay"]?.numeric ?? 0).seconds
        closeTimeout = value["close_timeout"]?.numeric.map { Milliseconds($0).seconds }
        hasTrackingConsent = value["has_tracking_consent"]?.bool ?? true
        consentCategory = value["consent_category_tracking"]?.string
        raw = value
    }
}
