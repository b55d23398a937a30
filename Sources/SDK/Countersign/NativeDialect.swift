internal import CountersignCore
package import CountersignTransport
package import Foundation

/// `POST /v1/batch`, in the shape of Segment's public HTTP API, with the write key and the user's token in headers.
package struct NativeDialect: EventDialect {
    private let url: URL
    private let writeKey: String
    private let timeout: TimeInterval
    private let userAgent: String
    /// The bytes of each event's member `context` that precede the session's ID.
    private let context: [UInt8]

    package init(
        endpoint: URL, writeKey: String, timeout: TimeInterval, context: EventContext = EventContext()
    ) {
        url = endpoint.appendingPathComponent("v1/batch")
        self.writeKey = writeKey
        self.timeout = timeout
        userAgent = context.userAgent
        let facts = JSONValue.object(context.json).bytes.dropLast()
        self.context = Array(",\"context\":".utf8) + facts + Array(",\"sessionId\":".utf8)
    }

    package func render(_ event: Event, of record: EventRecord, anonymousID: String) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(384 + context.count)
        func member(_ name: StaticString, _ text: String, first: Bool = false) {
            output.append(UInt8(ascii: first ? "{" : ","))
            output.append(UInt8(ascii: "\""))
            name.withUTF8Buffer { output.append(contentsOf: $0) }
            output.append(contentsOf: "\":".utf8)
            JSONValue.write(text, to: &output)
        }
        member("type", event.kind.rawValue, first: true)
        member("messageId", record.messageID)
        if let userID = record.userID { member("userId", userID) } else { member("anonymousId", anonymousID) }
        output.append(contentsOf: ",\"timestamp\":\"".utf8)
        Timestamp.write(record.timestamp, to: &output)
        output.append(UInt8(ascii: "\""))
        if let name = event.name { member(event.kind == .track ? "event" : "name", name) }
        if !event.payload.isEmpty {
            let carriesTraits = event.kind == .identify || event.kind == .group
            output.append(contentsOf: (carriesTraits ? ",\"traits\":" : ",\"properties\":").utf8)
            JSONValue.object(event.payload).write(to: &output)
        }
        output.append(contentsOf: context)
        JSONValue.write(record.sessionID, to: &output)
        output.append(contentsOf: "}}".utf8)
        return output
    }

    package func request(
        for events: [QueuedEvent], attempt: Int, deviceID: String, now: Date
    ) -> TransportRequest {
        var body: [UInt8] = []
        body.reserveCapacity(events.reduce(64) { $0 + $1.body.count + 1 })
        body.append(contentsOf: "{\"batch\":".utf8)
        for (index, event) in events.enumerated() {
            body.append(UInt8(ascii: index == 0 ? "[" : ","))
            body.append(contentsOf: event.body)
        }
        body.append(contentsOf: "],\"sentAt\":\"".utf8)
        Timestamp.write(now, to: &body)
        body.append(contentsOf: "\"}".utf8)

        let headers = [
            (name: "Content-Type", value: "application/json"),
            (name: "Accept", value: "application/json"),
            (name: "User-Agent", value: userAgent),
            (name: "X-Write-Key", value: writeKey),
        ]
        var request = TransportRequest(url: url, headers: headers, body: body, timeout: timeout)
        request.isCompressible = true
        return request
    }

    package func read(_ response: TransportResponse, for events: [QueuedEvent]) -> ServerAnswer {
        ServerAnswerBody(response).answer(to: response, eventCount: events.count) { body in
            // Require the count of accepted events: a captive portal's login page may have status 200 too.
            guard body.success == true || response.status == 400, let accepted = body.accepted else {
                return nil
            }
            return body.accepted(
                count: accepted, duplicates: body.duplicates ?? 0, rejected: body.rejected ?? [],
                eventCount: events.count)
        }
    }
}
