internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

enum FollowingAnswer {
    static let lines = "application/x-ndjson"
    /// Smaller responses are not compressed.
    private static let worthwhile = 1_024

    static func json(_ status: Int = 200, _ value: JSONValue, for call: FollowingCall) -> HTTPResponse {
        finished(HTTPResponse.json(status, value.bytes), call)
    }

    /// Events as one object or as JSON lines, with the next position.
    static func events(
        _ range: EventRange, _ positions: EventPositions, for call: FollowingCall
    ) -> HTTPResponse {
        let next = positions.text(after: range.scannedThrough, in: call.appID)
        let isAfterGap = range.gap.isOpen
        if call.takesLines {
            var body: [UInt8] = []
            reserve(range.events, in: &body)
            let positions = positions.of(call.appID)
            for event in range.events {
                event.write(to: &body, position: positions.text(after: event.sequence), asLine: true)
                body.append(UInt8(ascii: "\n"))
            }
            let headers: [(name: String, value: String)] = [
                ("Content-Type", lines), ("X-Countersign-Next", next),
                ("X-Countersign-Has-More", String(range.hasMore)),
                ("X-Countersign-Events-Missed", String(isAfterGap)),
            ]
            return finished(HTTPResponse(status: 200, headers: headers, body: body), call)
        }
        var body = Array("{".utf8)
        write(range.events, positions, call, to: &body)
        body += #","events_missed":\#(isAfterGap),"has_more":\#(range.hasMore),"next":"\#(next)"}"#.utf8
        return finished(.json(200, body), call)
    }

    static func lease(
        _ lease: EventLease?, hasMore: Bool, _ positions: EventPositions, for call: FollowingCall
    ) -> HTTPResponse {
        var body = Array("{".utf8)
        write(lease?.events ?? [], positions, call, to: &body)
        body += #","events_missed":\#(lease?.gap.isOpen ?? false),"has_more":\#(hasMore),"lease":"#.utf8
        guard let lease else {
            body += "null}".utf8
            return finished(.json(200, body), call)
        }
        let details: JSONValue = [
            "id": .string(lease.id), "partition": .integer(Int64(lease.partition)),
            "expires_ms": .integer(lease.deadlineMilliseconds),
            "position": .string(positions.text(after: lease.scannedThrough, in: call.appID)),
        ]
        details.write(to: &body)
        body.append(UInt8(ascii: "}"))
        return finished(.json(200, body), call)
    }

    private static func write(
        _ events: [StoredEvent], _ positions: EventPositions, _ call: FollowingCall, to body: inout [UInt8]
    ) {
        reserve(events, in: &body)
        body += #""events":["#.utf8
        let positions = positions.of(call.appID)
        for (index, event) in events.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            event.write(to: &body, position: positions.text(after: event.sequence))
        }
        body.append(UInt8(ascii: "]"))
    }

    /// Reserves capacity for the whole response to avoid repeated copying.
    private static func reserve(_ events: [StoredEvent], in body: inout [UInt8]) {
        body.reserveCapacity(events.reduce(body.count + 1_024) { $0 + $1.body.count + 512 })
    }

    private static func finished(_ response: HTTPResponse, _ call: FollowingCall) -> HTTPResponse {
        var response = response.with("Cache-Control", "no-store").with("Vary", "Accept, Accept-Encoding")
        response.changesNothing = true
        guard call.takesGzip, response.body.count >= worthwhile, let packed = Gzip.compress(response.body)
        else {
            return response
        }
        response.body = packed
        return response.with("Content-Encoding", "gzip")
    }
}
