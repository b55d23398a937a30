internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A customer update, an event or a campaign click, one a request.
///
/// In the queue it is `{"url":…,"body":…}`: where it goes and what is sent there stay as they were when it was recorded. Its
/// owner is the project: projects wait for themselves alone, and a new API key also works for old records.
struct BloomreachRecord: RecordContent {
    fileprivate static let head = Array(#"{"url":"#.utf8)
    fileprivate static let middle = Array(#","body":"#.utf8)

    let url: URL
    let body: JSONObject

    var estimatedBytes: Int { JSONValue.object(body).estimatedBytes }

    func rendered(for record: EventRecord, anonymousID: String) -> [UInt8] {
        var body = body
        // Not the vendor's: it keeps a request that is sent twice from counting twice.
        body["message_id"] = .string(record.messageID)
        var row = Self.head
        JSONValue.write(url.absoluteString, to: &row)
        row += Self.middle
        JSONValue.object(body).write(to: &row)
        row.append(UInt8(ascii: "}"))
        return row
    }

    /// A URL holds no quotation mark, so its end is the first one.
    fileprivate static func parts(_ row: [UInt8]) -> (url: URL, body: [UInt8]) {
        let start = head.count + 1
        let end = row.dropFirst(start).firstIndex(of: UInt8(ascii: "\"")) ?? row.endIndex
        let text = row.count > start ? String(decoding: row[start..<end], as: UTF8.self) : ""
        let body = row.dropFirst(end + 1 + middle.count).dropLast()
        return (URL(string: text) ?? URL(fileURLWithPath: "/"), Array(body))
    }
}

/// Wherever each `BloomreachRecord` says.
struct BloomreachDestination: Destination {
    let timeout: TimeInterval

    func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        let row = events[0].body
        let (url, body) = BloomreachRecord.parts(row)
        return TransportRequest(url: url, headers: BloomreachRequest.headers, body: body, timeout: timeout)
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        BloomreachAnswer(response).meaning
    }
}

/// What all requests have in common.
enum BloomreachRequest {
    static let headers = [
        (name: "Content-Type", value: "application/json"), (name: "Accept", value: "application/json"),
    ]
}
