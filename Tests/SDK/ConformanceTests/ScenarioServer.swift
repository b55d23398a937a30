import CountersignCore
import CountersignDelivery
import CountersignTransport
import Foundation
import SDKTestSupport

/// The server for events and tokens. Without a matching rule of the scenario it behaves as a correct server.
final class ScenarioServer: HTTPTransport {
    private struct Rule {
        let value: JSONValue
        var timesLeft: Int?
    }

    private struct State {
        var rules: [Rule] = []
        var requests: [JSONValue] = []
        var stored: Set<String> = []
        /// Names of the stored events, in the order of arrival.
        var delivered: [JSONValue] = []
        var duplicates = 0
        var underWay = 0
        var overlaps = 0
        /// The number of the current pair of tokens, from 0.
        var exchanges = 0
        var overrun: @Sendable () -> Void = {}
    }

    private enum Reply: Sendable {
        case response(TransportResponse)
        case failure(HTTPTransportError)
        case none
    }

    /// More requests between two checks than any scenario expects. Stops clients that retry without waiting.
    private static let mostRequests = 2_000
    static let url = "https://server.example"
    static let tokenURL = "https://tokens.example/refresh"

    private let clock: ScenarioClock
    private let obstacles: Obstacles
    private let tokenLifetime: JSONValue?
    private let state = Lock(State())

    init(_ scenario: Scenario, clock: ScenarioClock, obstacles: Obstacles) {
        self.clock = clock
        self.obstacles = obstacles
        tokenLifetime = scenario.tokenLifetime
        answer(by: scenario.rules)
    }

    func answer(by rules: [JSONValue]) {
        let made = rules.map { Rule(value: $0, timesLeft: $0["times"]?.double.map { Int($0) }) }
        state.withLock { $0.rules = made }
    }

    /// Sets the function to call when the client reaches `mostRequests`. That request and later ones hang.
    func onOverrun(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.overrun = body } }

    // MARK: Observations

    /// Returns the requests since the last call.
    func takeRequests() -> [JSONValue] {
        state.withLock { state in
            defer { state.requests = [] }
            return state.requests
        }
    }

    var delivered: JSONValue { .array(state.withLock { $0.delivered }) }
    var duplicates: Int { state.withLock { $0.duplicates } }
    var overlaps: Int { state.withLock { $0.overlaps } }

    // MARK: Answers

    func send(_ request: TransportRequest) async throws(HTTPTransportError) -> TransportResponse {
        let received = ReceivedRequest(request, at: clock.elapsed)
        let (reply, overrun) = state.withLock { state -> (Reply, (@Sendable () -> Void)?) in
            if !received.events.isEmpty {
                state.underWay += 1
                if state.underWay > 1 { state.overlaps += 1 }
            }
            state.requests.append(received.observed)
            let isOverrun = state.requests.count >= Self.mostRequests
            return isOverrun ? (.none, state.overrun) : (decide(received, &state), nil)
        }
        overrun?()
        if case .none = reply { await obstacles.wait(.request, until: .infinity) }
        if !received.events.isEmpty { state.withLock { $0.underWay -= 1 } }
        switch reply {
        case .response(let response): return response
        case .failure(let error): throw error
        case .none: throw HTTPTransportError(.cancelled, "the client is gone")
        }
    }

    private func decide(_ request: ReceivedRequest, _ state: inout State) -> Reply {
        let index = state.rules.firstIndex { rule in
            rule.timesLeft != 0 && request.matches(rule.value["when"] ?? [:], at: clock.elapsed)
        }
        guard let index else { return .response(good(request, [:], &state)) }
        if let times = state.rules[index].timesLeft { state.rules[index].timesLeft = times - 1 }
        let rule = state.rules[index].value
        if rule["stores"]?.bool == true { _ = good(request, [:], &state) }
        if rule["hangs"] != nil { return .none }
        if let code = rule["error"]?.string {
            return .failure(HTTPTransportError(.init(rawValue: code), "as the scenario says"))
        }
        var headers = (rule["headers"]?.object ?? [:]).map { (name: $0.key, value: $0.value.string ?? "") }
        if let offset = rule["date"]?.double { headers.append(("Date", date(offset))) }
        if let seconds = rule["retry_date"]?.double { headers.append(("Retry-After", date(seconds))) }
        let answer: TransportResponse
        if let rejection = rule["refuse"] {
            let body = JSONValue.object(["success": false, "auth_error": rejection])
            answer = TransportResponse(status: 401, body: body.bytes)
        } else if let status = rule["status"]?.double {
            let body = rule["text"]?.string.map { Array($0.utf8) } ?? (rule["body"] ?? [:]).bytes
            answer = TransportResponse(status: Int(status), body: body)
        } else {
            answer = good(request, rule, &state)
        }
        return .response(
            TransportResponse(status: answer.status, headers: answer.headers + headers, body: answer.body))
    }

    private func date(_ offset: TimeInterval) -> String {
        let seconds = TimeInterval(ScenarioClock.start) + clock.elapsed + offset
        return TokenServer.httpDate(Date(timeIntervalSince1970: seconds))
    }

    /// Stores all events except those in the rule's `reject`.
    private func good(_ request: ReceivedRequest, _ rule: JSONValue, _ state: inout State)
        -> TransportResponse
    {
        if request.isForTokens { return exchange(request, &state) }
        var rejected: [JSONValue] = []
        var duplicates = 0
        for (index, event) in request.events.enumerated() {
            if rule["reject"] == "all" || rule["reject"]?.array?.contains(.string(event.name)) == true {
                rejected.append(["index": .integer(Int64(index)), "code": "invalid_event", "reason": "so"])
            } else if state.stored.insert(event.id).inserted {
                state.delivered.append(.string(event.name))
            } else {
                duplicates += 1
            }
        }
        state.duplicates += duplicates
        var body: JSONObject = ["success": true]
        if request.saysCounts {
            let accepted = request.events.count - rejected.count - duplicates
            body["accepted"] = .integer(Int64(accepted))
            body["duplicates"] = .integer(Int64(duplicates))
            body["rejected"] = .array(rejected)
        }
        body.merge(rule["body"]?.object ?? [:]) { _, new in new }
        return TransportResponse(status: 200, body: JSONValue.object(body).bytes)
    }

    /// Rotates the tokens. The previous refresh token gets the current pair again. Older tokens fail.
    private func exchange(_ request: ReceivedRequest, _ state: inout State) -> TransportResponse {
        guard let serial = request.refreshToken.flatMap({ Int($0.dropFirst()) }),
            (state.exchanges - 1...state.exchanges).contains(serial)
        else { return TransportResponse(status: 400, body: Array(#"{"error":"invalid_grant"}"#.utf8)) }
        if serial == state.exchanges { state.exchanges += 1 }
        var body: JSONObject = [
            "access_token": .string("A\(state.exchanges)"), "refresh_token": .string("R\(state.exchanges)"),
        ]
        body["expires_in"] = tokenLifetime
        return TransportResponse(status: 200, body: JSONValue.object(body).bytes)
    }
}
