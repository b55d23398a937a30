internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A customer update, an event or a campaign click, sent in a request of its own.
///
/// Stored as `{"url":…,"body":…}`, so that URL and body do not change after recording. The owner is the project:
/// back-off applies to one project at a time, and a new API key also applies to older records.
struct BloomreachRecord: RecordContent {
    fileprivate static let head = Array(#"{"url":"#.utf8)
    fileprivate static let middle = Array(#","body":"#.utf8)

    let url: URL
    let body: JSONObject

    var estimatedBytes: Int { JSONValue.object(body).estimatedBytes }

    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] {
        var body = body
        // `message_id` is not in the vendor's format. Countersign's gateway recognizes repeated requests by this ID.
        body["message_id"] = .string(record.messageID)
        var row = Self.head
        JSONValue.write(url.absoluteString, to: &row)
        row += Self.middle
        JSONValue.object(body).write(to: &row)
        row.append(UInt8(ascii: "}"))
        return row
    }

    /// The first quotation mark ends the URL, because a URL contains no quotation mark.
    fileprivate static func parts(_ row: [UInt8]) -> (url: URL, body: [UInt8]) {
        let start = head.count + 1
        let end = row.dropFirst(start).firstIndex(of: UInt8(ascii: "\"")) ?? row.endIndex
        let text = row.count > start ? String(decoding: row[start..<end], as: UTF8.self) : ""
        let body = row.dropFirst(end + 1 + middle.count).dropLast()
        return (URL(string: text) ?? URL(fileURLWithPath: "/"), Array(body))
    }
}

struct BloomreachDestination: Destination {
    let headers: [(name: String, value: String)]
    let timeout: TimeInterval

    func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        let (url, body) = BloomreachRecord.parts(events[0].body)
        return TransportRequest(url: url, headers: headers, body: body, timeout: timeout)
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        BloomreachAnswer(response).meaning
    }
}
