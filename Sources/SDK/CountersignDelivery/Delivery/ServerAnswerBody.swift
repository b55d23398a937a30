package import CountersignTransport
package import Foundation

/// The members that the SDK reads in responses of all protocols.
package struct ServerAnswerBody: Decodable, Sendable {
    package struct Rejection: Decodable, Sendable {
        package let index: Int
        let code: String
        let reason: String?

        package func moved(to index: Int) -> Rejection {
            Rejection(index: index, code: code, reason: reason)
        }
    }

    package private(set) var success: Bool?
    package private(set) var message: String?
    package private(set) var accepted: Int?
    package private(set) var duplicates: Int?
    package private(set) var rejected: [Rejection]?
    package private(set) var errors: [Rejection]?
    private var code: String?
    private var reason: String?
    private var authError: AuthError?
    private var authWarning: AuthError?

    private enum CodingKeys: String, CodingKey {
        case success, message, accepted, duplicates, rejected, errors, code, reason
        case authError = "auth_error"
        case authWarning = "auth_warning"
    }

    /// If the body is not a JSON object of the known shape, all members are nil.
    package init(_ response: TransportResponse) {
        self = (try? JSONDecoder().decode(Self.self, from: Data(response.body))) ?? Self()
    }

    private init() {}

    package var verdict: ServerAnswer.TokenVerdict? { authError?.verdict }
    package var serverTime: Date? { authError?.serverTime }
    /// True if the server rejected all events. The status of the response does not matter.
    package var rejectsEverything: Bool { code == "all_events_rejected" }

    package func answer(
        to response: TransportResponse, eventCount: Int, success: (ServerAnswerBody) -> ServerAnswer.Meaning?
    ) -> ServerAnswer {
        let meaning = meaning(of: response, eventCount: eventCount, success: success)
        var answer = ServerAnswer(meaning, to: response)
        switch meaning {
        case .accepted, .tokenProblem: answer.serverTime = serverTime ?? ServerAnswer.serverTime(in: response)
        default: break  // The response may be a proxy's, with the time of the proxy's clock.
        }
        return answer
    }

    private func meaning(
        of response: TransportResponse, eventCount: Int, success: (ServerAnswerBody) -> ServerAnswer.Meaning?
    ) -> ServerAnswer.Meaning {
        let explanation = ServerAnswer.Explanation(
            code ?? "http_\(response.status)",
            reason ?? "the server answered \(response.status) without a reason")
        if let verdict { return .tokenProblem(verdict) }
        // The server has rejected each event individually, so sending them one by one would not help.
        if response.status == 400, (rejected ?? errors)?.count == eventCount,
            let meaning = success(self)
        {
            return meaning
        }
        if [403, 429].contains(response.status), ["user_blocked", "user_rate_limited"].contains(code) {
            return .userRestricted(explanation)
        }
        if let meaning = ServerAnswer.meaning(ofStatus: response.status, explanation: explanation) {
            return meaning
        }
        if response.status == 401 { return .configurationProblem(explanation) }
        return success(self) ?? ServerAnswer.unexpected(response)
    }

    /// Nil if the numbers do not add up. The ranges keep their sum from overflowing.
    package func accepted(
        count: Int, duplicates: Int, rejected: [Rejection], eventCount: Int
    ) -> ServerAnswer.Meaning? {
        guard 0...eventCount ~= count, 0...eventCount ~= duplicates,
            count + duplicates + rejected.count == eventCount,
            rejected.allSatisfy({ (0..<eventCount).contains($0.index) }),
            Set(rejected.map(\.index)).count == rejected.count
        else { return nil }
        return .accepted(
            duplicates: duplicates,
            rejected: rejected.map { rejection in
                ServerAnswer.Rejection(
                    index: rejection.index, explanation: .init(rejection.code, rejection.reason ?? ""))
            }, warning: authWarning?.verdict)
    }
}
