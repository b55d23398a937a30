import CountersignConsumer
import CountersignTesting
import CountersignTransport
import Foundation

/// Responses in the gateway's format.
enum GatewayScript {
    static let endpoint = URL(string: "https://gateway.example/base") ?? URL(fileURLWithPath: "/")
    static let token = "csa_secret"

    static func event(
        _ sequence: Int, body: String = #"{"type":"track"}"#, claims: String = "null"
    ) -> String {
        #"""
        {"body":\#(body),"anonymous_id":null,"code":null,"dialect":"native","enforcement":"required","key_id":"2026",\#
        "message_id":"m-\#(sequence)","name":"Order","position":"p\#(sequence)","received_ms":1500,"request_id":null,\#
        "seq":\#(sequence),"timestamp_ms":1000,"token_id":null,"type":"track","user_id":"user-1","verdict":"verified",\#
        "claims":\#(claims)}
        """#
    }

    static func batch(_ events: String..., lease: String = "l-1") -> TransportResponse {
        ok(
            #"{"events":[\#(events.joined(separator: ","))],"events_missed":false,"has_more":true,"#
                + #""lease":{"expires_ms":9,"id":"\#(lease)","partition":2,"position":"p9"}}"#)
    }

    static let nothing = ok(#"{"events":[],"events_missed":false,"has_more":false,"lease":null}"#)
    static let done = ok("{}")

    static func page(_ events: String..., next: String, hasMore: Bool = true) -> TransportResponse {
        ok(
            #"{"events":[\#(events.joined(separator: ","))],"events_missed":false,"has_more":\#(hasMore),"#
                + #""next":"\#(next)"}"#)
    }

    static func ok(_ body: String) -> TransportResponse {
        TransportResponse(status: 200, body: Array(body.utf8))
    }

    static func rejection(
        _ status: Int, _ code: String, headers: [(name: String, value: String)] = []
    ) -> TransportResponse {
        TransportResponse(
            status: status, headers: headers,
            body: Array(#"{"success":false,"code":"\#(code)","reason":"because of \#(token)"}"#.utf8))
    }

    /// Answers polls with `polls` in order. Further polls wait until cancelled.
    static func transport(
        polls: TransportResponse..., clock: ManualClock, other: TransportResponse = done
    ) -> ScriptedTransport {
        let left = Answers(polls)
        return ScriptedTransport { request in
            guard request.method == "GET" || request.url.path.hasSuffix("/poll") else { return other }
            if let answer = left.next() { return answer }
            try await clock.sleep(until: .infinity)
            throw HTTPTransportError(.connectionLost, "scripted")
        }
    }

    static func consumer(
        _ transport: any HTTPTransport, _ clock: ManualClock, fraction: Double = 0
    ) throws -> EventConsumer {
        try EventConsumer(
            endpoint: endpoint, app: "shop", token: token, name: "billing", transport: transport,
            clock: clock, fraction: { fraction })
    }

    static func names(_ transport: ScriptedTransport) -> [String] {
        transport.requests.map(\.url.lastPathComponent)
    }

    static func text(_ request: TransportRequest) -> String { String(decoding: request.body, as: UTF8.self) }
}

/// Hands out responses in order.
final class Answers: @unchecked Sendable {
    // `lock` guards `left`.
    private let lock = NSLock()
    private var left: ArraySlice<TransportResponse>

    init(_ answers: [TransportResponse]) {
        left = answers[...]
    }

    func next() -> TransportResponse? {
        lock.lock()
        defer { lock.unlock() }
        return left.popFirst()
    }
}
