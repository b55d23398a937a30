internal import Countersign
internal import CountersignCore
internal import Foundation

/// `POST /api/v3/data`, as Braze's SDKs send it.
struct BrazeDialect: DeliveryDialect {
    private let url: URL
    private let apiKey: String
    private let signsRequests: Bool
    private let timeout: TimeInterval

    init(endpoint: URL, apiKey: String, signsRequests: Bool, timeout: TimeInterval) {
        url = endpoint.appendingPathComponent("api/v3/data")
        self.apiKey = apiKey
        self.signsRequests = signsRequests
        self.timeout = timeout
    }

    func render(_ record: EventRecord, anonymousID: String) -> [UInt8] {
        var data: [String: JSONValue] = ["n": .string(record.name ?? "")]
        if !record.payload.isEmpty { data["p"] = .object(record.payload) }
        var event: [String: JSONValue] = [
            "name": "ce", "data": .object(data), "session_id": .string(record.sessionID),
            "time": .number((record.timestamp.timeIntervalSince1970 * 1_000).rounded() / 1_000),
            // Not Braze's: it keeps a request that is sent twice from counting twice.
            "message_id": .string(record.messageID),
        ]
        if let userID = record.userID { event["user_id"] = .string(userID) }
        return JSONValue.object(event).bytes
    }

    func request(
        for events: [QueuedEvent], token: SignedToken?, attempt: Int, deviceID: String, now: Date
    ) -> HTTPRequest {
        var body = Array(#"{"api_key":"#.utf8)
        JSONValue.write(apiKey, to: &body)
        body.append(contentsOf: #","device_id":"#.utf8)
        JSONValue.write(deviceID, to: &body)
        body.append(contentsOf: #","events":["#.utf8)
        for (index, event) in events.enumerated() {
            if index > 0 { body.append(UInt8(ascii: ",")) }
            body.append(contentsOf: event.body)
        }
        body.append(contentsOf: "]".utf8)
        if let userID = events.first?.userID {
            body.append(contentsOf: #","respond_with":{"user_id":"#.utf8)
            JSONValue.write(userID, to: &body)
            body.append(UInt8(ascii: "}"))
        }
        body.append(contentsOf: #","sdk_version":"#.utf8)
        JSONValue.write(SDKVersion.current, to: &body)
        body.append(contentsOf: #","time":\#(Int64(now.timeIntervalSince1970))}"#.utf8)

        var headers = [
            (name: "Content-Type", value: "application/json"),
            (name: "X-Braze-Api-Key", value: apiKey),
            (name: "X-Braze-DataRequest", value: "true"),
            (name: "X-Braze-Req-Attempt", value: "\(attempt)"),
        ]
        if signsRequests, let token {
            headers.append((name: "X-Braze-Auth-Signature", value: token.rawValue))
        }
        return HTTPRequest(url: url, headers: headers, body: body, timeout: timeout)
    }

    func read(_ response: HTTPResponse, eventCount: Int) -> ServerAnswer {
        ServerAnswerBody(response).answer(to: response) { body in
            guard body.message == "success" else { return nil }
            let errors = body.errors ?? []
            return body.accepted(
                count: eventCount - errors.count, duplicates: 0, rejected: errors, eventCount: eventCount)
        }
    }
}
