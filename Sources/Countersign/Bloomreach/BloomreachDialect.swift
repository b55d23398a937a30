internal import CountersignCore
internal import Foundation

/// Customer updates, events and campaign clicks, one a request.
///
/// A row is `{"url":…,"body":…}`: where it goes and what is sent there stay as they were when it was recorded. Its user, for
/// the queue, is the project, and the user's token is the project's API key: projects wait for themselves alone, and a new
/// key is good for old rows.
struct BloomreachDialect: DeliveryDialect {
    private static let head = Array(#"{"url":"#.utf8)
    private static let middle = Array(#","body":"#.utf8)

    let timeout: TimeInterval

    /// `record.name` is the URL and `record.payload` the body, but for the message id.
    func render(_ record: EventRecord, anonymousID: String) -> [UInt8] {
        var body = record.payload
        // Not the vendor's: it keeps a request that is sent twice from counting twice.
        body["message_id"] = .string(record.messageID)
        var row = Self.head
        JSONValue.write(record.name ?? "", to: &row)
        row += Self.middle
        JSONValue.object(body).write(to: &row)
        row.append(UInt8(ascii: "}"))
        return row
    }

    func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        let row = events[0].body
        let (url, body) = Self.parts(row)
        return TransportRequest(url: url, headers: BloomreachRequest.headers, body: body, timeout: timeout)
    }

    func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        BloomreachAnswer(response).meaning
    }

    /// A URL holds no quotation mark, so its end is the first one.
    private static func parts(_ row: [UInt8]) -> (url: URL, body: [UInt8]) {
        let start = head.count + 1
        let end = row.dropFirst(start).firstIndex(of: UInt8(ascii: "\"")) ?? row.endIndex
        let text = row.count > start ? String(decoding: row[start..<end], as: UTF8.self) : ""
        let body = row.dropFirst(end + 1 + middle.count).dropLast()
        return (URL(string: text) ?? URL(fileURLWithPath: "/"), Array(body))
    }
}

/// What all requests have in common.
enum BloomreachRequest {
    static let headers = [
        (name: "Content-Type", value: "application/json"), (name: "Accept", value: "application/json"),
    ]
}
