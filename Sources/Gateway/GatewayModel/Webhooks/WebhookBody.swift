internal import CountersignCore

package struct WebhookBody: Sendable {
    /// The maximum size in bytes. A larger event is sent alone.
    private static let maximumBytes = 512 * 1_024

    package private(set) var events = 0
    private var text = Array(#"{"type":"events","app":"#.utf8)

    package init(appID: String, isReplay: Bool = false, isAfterGap: Bool) {
        JSONValue.string(appID).write(to: &text)
        if isReplay { text.append(contentsOf: #","replay":true"#.utf8) }
        if isAfterGap { text.append(contentsOf: #","events_missed":true"#.utf8) }
        text.append(contentsOf: #","events":["#.utf8)
    }

    /// Appends the JSON of an event. Returns false if the event does not fit.
    package mutating func append(_ event: [UInt8]) -> Bool {
        guard events == 0 || text.count + event.count + 3 <= Self.maximumBytes else { return false }
        if events > 0 { text.append(UInt8(ascii: ",")) }
        text.append(contentsOf: event)
        events += 1
        return true
    }

    package consuming func finished() -> [UInt8] {
        text.append(contentsOf: "]}".utf8)
        return text
    }
}
