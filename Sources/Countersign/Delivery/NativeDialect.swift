internal import CountersignCore
package import Foundation

/// `POST /v1/batch`, in the shape of Segment's public HTTP API, with the write key and the user's token in headers.
package struct NativeDialect: DeliveryDialect {
    private let url: URL
    private let writeKey: String
    private let timeout: TimeInterval

    /// - Parameters:
    ///   - endpoint: The server's base URL, without `/v1/batch`.
    ///   - writeKey: The app's key: visible ASCII.
    ///   - timeout: Seconds that a request may take.
    package init(endpoint: URL, writeKey: String, timeout: TimeInterval) {
        url = endpoint.appendingPathComponent("v1/batch")
        self.writeKey = writeKey
        self.timeout = timeout
    }

    package func render(_ record: EventRecord, anonymousID: String) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(384)
        func member(_ name: StaticString, _ text: String, first: Bool = false) {
            output.append(UInt8(ascii: first ? "{" : ","))
            output.append(UInt8(ascii: "\""))
            name.withUTF8Buffer { output.append(contentsOf: $0) }
            output.append(contentsOf: "\":".utf8)
            JSONValue.write(text, to: &output)
        }
        member("type", record.kind.rawValue, first: true)
        member("messageId", record.messageID)
        if let userID = record.userID { member("userId", userID) } else { member("anonymousId", anonymousID) }
        output.append(contentsOf: ",\"timestamp\":\"".utf8)
        Timestamp.write(record.timestamp, to: &output)
        output.append(UInt8(ascii: "\""))
        if let name = record.name { member(record.kind == .track ? "event" : "name", name) }
        if !record.payload.isEmpty {
            let carriesTraits = record.kind == .identify || record.kind == .group
            output.append(contentsOf: (carriesTraits ? ",\"traits\":" : ",\"properties\":").utf8)
            JSONValue.object(record.payload).write(to: &output)
        }
        output.append(
            contentsOf: ",\"context\":{\"library\":{\"name\":\"countersign-swift\",\"version\":".utf8)
        JSONValue.write(SDKVersion.current, to: &output)
        output.append(contentsOf: "},\"sessionId\":".utf8)
        JSONValue.write(record.sessionID, to: &output)
        output.append(contentsOf: "}}".utf8)
        return output
    }

    package func request(
        for events: [QueuedEvent], token: SignedToken?, attempt: Int, now: Date
    ) -> HTTPRequest {
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

        var headers = [
            (name: "Content-Type", value: "application/json"),
            (name: "Accept", value: "application/json"),
            (name: "User-Agent", value: "countersign-swift/\(SDKVersion.current)"),
            (name: "X-Write-Key", value: writeKey),
        ]
        if let token { headers.append((name: "Authorization", value: "Bearer \(token.rawValue)")) }
        return HTTPRequest(url: url, headers: headers, body: body, timeout: timeout)
    }

    package func read(_ response: HTTPResponse, eventCount: Int) -> ServerAnswer {
        let body = try? JSONDecoder().decode(NativeAnswerBody.self, from: Data(response.body))
        let serverTime =
            body?.auth_error?.server_time_ms.map { Date(timeIntervalSince1970: $0 / 1_000) }
            ?? ServerAnswer.serverTime(in: response)
        return ServerAnswer(
            meaning(of: response, body: body, eventCount: eventCount), status: response.status,
            retryAfter: ServerAnswer.retryAfter(in: response, serverTime: serverTime), serverTime: serverTime)
    }

    private func meaning(
        of response: HTTPResponse, body: NativeAnswerBody?, eventCount: Int
    ) -> ServerAnswer.Meaning {
        let explanation = ServerAnswer.Explanation(
            body?.code ?? "http_\(response.status)",
            body?.reason ?? "the server answered \(response.status) without a reason")
        if let meaning = ServerAnswer.meaning(ofStatus: response.status, explanation: explanation) {
            return meaning
        }
        if response.status == 401 {
            if let verdict = body?.auth_error?.verdict { return .tokenProblem(verdict) }
            return .configurationProblem(explanation)
        }
        // A login page of a hotel answers 200 too: events leave only when the gateway says how many it has.
        guard let body, body.success == true, let accepted = body.accepted else {
            return .tryLater(.init("not_understood", "the answer is not a gateway's"))
        }
        let duplicates = body.duplicates ?? 0
        let rejected = body.rejected ?? []
        guard accepted >= 0, duplicates >= 0, accepted + duplicates + rejected.count == eventCount,
            rejected.allSatisfy({ (0..<eventCount).contains($0.index) }),
            Set(rejected.map(\.index)).count == rejected.count
        else { return .tryLater(.init("not_understood", "the answer does not add up")) }
        return .accepted(
            duplicates: duplicates,
            rejected: rejected.map {
                ServerAnswer.Rejection(index: $0.index, explanation: .init($0.code, $0.reason ?? ""))
            },
            warning: body.auth_warning?.verdict)
    }
}

/// The members of the gateway's answers that the SDK reads, by their names on the wire.
private struct NativeAnswerBody: Decodable {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    struct AuthError: Decodable {
        let error_code: Int
        let reason: String?
        let server_time_ms: Double?
        let clock_skew_seconds: Double?

        var verdict: ServerAnswer.TokenVerdict {
            let code = AuthErrorCode(rawValue: error_code)
            return ServerAnswer.TokenVerdict(
                code: code, reason: reason ?? code.reason, clockSkew: clock_skew_seconds)
        }
    }

    struct Rejection: Decodable {
        let index: Int
        let code: String
        let reason: String?
    }

    let success: Bool?
    let accepted: Int?
    let duplicates: Int?
    let rejected: [Rejection]?
    let code: String?
    let reason: String?
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let auth_error: AuthError?
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let auth_warning: AuthError?
}
