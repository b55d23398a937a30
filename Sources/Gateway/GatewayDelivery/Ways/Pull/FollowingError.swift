internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// An error response to a reader of events.
struct FollowingError: Error {
    let status: Int
    let code: String
    let reason: String
    var retryAfterSeconds: Int?

    init(_ status: Int, _ code: String, _ reason: String, retryAfterSeconds: Int? = nil) {
        self.status = status
        self.code = code
        self.reason = reason
        self.retryAfterSeconds = retryAfterSeconds
    }

    init(_ fault: EventPositions.Fault) {
        self.init(422, fault.rawValue, fault.reason)
    }

    init(_ failure: ConsumerFailure) {
        switch failure.code {
        case .notFound: self.init(404, failure.code.rawValue, failure.reason)
        case .exists, .tooMany, .leaseExpired: self.init(409, failure.code.rawValue, failure.reason)
        case .invalid: self.init(400, failure.code.rawValue, failure.reason)
        case .notInLease: self.init(422, failure.code.rawValue, failure.reason)
        case .storage:
            self.init(
                503, failure.store?.code ?? failure.code.rawValue, failure.reason,
                retryAfterSeconds: failure.store?.retryAfterSeconds ?? 5)
        }
    }

    static func invalid(_ name: String, _ what: String) -> FollowingError {
        FollowingError(400, "invalid_parameter", "\(name) \(what)")
    }

    static func invalid(_ name: String, oneOf words: [String]) -> FollowingError {
        invalid(name, "must be one of " + words.joined(separator: ", "))
    }

    static let tooMany = FollowingError(
        429, "too_many_readers",
        "too many requests read events of this gateway or app; wait for an answer before asking again",
        retryAfterSeconds: 1)

    func response(requestID: String) -> HTTPResponse {
        var response = HTTPResponse.failure(status, code, reason, requestID: requestID)
        if status == 401 { response.headers.append(("WWW-Authenticate", "Bearer")) }
        if let retryAfterSeconds { response.headers.append(("Retry-After", String(retryAfterSeconds))) }
        return response
    }
}
