internal import CountersignCore
internal import CountersignTransport
internal import Foundation

/// A response of a Bloomreach server. `"success": false` is a failure even with the status 200.
struct BloomreachAnswer {
    private static let maximumReason = 300

    let response: TransportResponse
    /// Nil when the body is not a JSON object.
    let members: JSONObject?
    private let auth: AuthErrors?

    init(_ response: TransportResponse) {
        self.response = response
        auth = AuthErrors(response)
        members = JSONDocument.object(response.body)
    }

    var status: Int { response.status }

    private var isSuccess: Bool? { members?["success"]?.bool }

    private var authError: AuthError? { auth?.authError }

    /// The server's reason, printable and truncated.
    private var reason: String {
        let texts: [String?] = [
            members?["error"]?.string, members?["message"]?.string, members?["errors"]?.firstText,
        ]
        guard let text = texts.compactMap({ $0 }).first(where: { !$0.isEmpty }) else {
            return "the server answered \(status) without a reason"
        }
        return String(
            text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }.prefix(Self.maximumReason))
    }

    /// Texts of the vendor's 400 responses if the project or its key is at fault, not the request.
    private static let projectFaults = ["could not authenticate", "invalid project id"]

    private var isProjectFault: Bool {
        status == 400 && Self.projectFaults.contains(reason.lowercased())
    }

    // MARK: Tracking

    /// The outcome for an event in the queue.
    var meaning: ServerAnswer {
        var answer = ServerAnswer(eventMeaning, to: response)
        let date = ServerAnswer.serverTime(in: response)
        // Ignore the time of all other responses, because they may come from a proxy with its own clock.
        if case .accepted = answer.meaning { answer.serverTime = date }
        if let authError { answer.serverTime = authError.serverTime ?? date }
        return answer
    }

    private var eventMeaning: ServerAnswer.Meaning {
        if !(200..<300).contains(status), let authError { return .tokenProblem(authError.verdict) }
        // A captive portal may send its login page with any status, so a page says nothing about the API key.
        if ServerAnswer.isPage(response) { return ServerAnswer.unexpected(response) }
        // A token problem delays only the records of this project, because the queue's back-off is per project.
        if [401, 403].contains(status) || isProjectFault {
            return .tokenProblem(.init(code: AuthErrorCode(rawValue: 0), reason: reason))
        }
        if let meaning = ServerAnswer.meaning(
            ofStatus: status, explanation: .init("http_\(status)", reason))
        {
            return meaning
        }
        switch isSuccess {
        case true:
            let isDuplicate = members?["duplicate"]?.bool ?? false
            return .accepted(
                duplicates: isDuplicate ? 1 : 0, rejected: [],
                warning: auth?.authWarning?.verdict)
        case false: return .rejected(.init("success_false", reason))
        default: return ServerAnswer.unexpected(response)
        }
    }

    // MARK: Queries

    /// The members of a successful response. `now` is the device clock.
    func result(of endpoint: BloomreachEndpoint, now: Date) throws(CountersignError) -> JSONObject {
        func error(_ code: CountersignError.Code, _ detail: String) -> CountersignError {
            let serverTime = ServerAnswer.serverTime(in: response) ?? now
            return CountersignError(
                code, endpoint, detail, status: status, authCode: authError?.verdict.code,
                retryAfter: ServerAnswer.retryAfter(in: response, serverTime: serverTime))
        }
        let isUnauthorized = [401, 403].contains(status) || authError != nil || isProjectFault
        switch status {
        case 200..<300: break
        case _ where ServerAnswer.isPage(response):
            throw error(.notUnderstood, "the response is a web page, perhaps a network's login page")
        case _ where isUnauthorized:
            throw error(.authorizationRefused, authError.map { "\($0.verdict.reason): \(reason)" } ?? reason)
        case 410: throw error(.gone, reason)
        case 408, 421, 425, 429, 500...: throw error(.serverFailed, reason)
        default: throw error(.refused, reason)
        }
        guard let members, let isSuccess else {
            throw error(.notUnderstood, "the response has an unexpected format")
        }
        guard isSuccess else { throw error(.refused, reason) }
        return members
    }
}

extension JSONValue {
    /// The text of the first error, which is a string or an object with a `description` or `message`.
    fileprivate var firstText: String? {
        guard let first = array?.first else { return nil }
        return first.string ?? first["description"]?.string ?? first["message"]?.string
    }
}
