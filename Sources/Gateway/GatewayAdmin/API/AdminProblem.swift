internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// An error response of the admin API, as problem details (RFC 9457).
struct AdminProblem: Error {
    let status: Int
    /// The stable identifier at the end of the type's URL.
    let code: String
    let detail: String
    /// The invalid value. `place` is a JSON pointer into the body (RFC 6901) if `kind` is `pointer`, and the name of
    /// a query parameter if it is `parameter`.
    var error: (kind: String, place: String, detail: String)?
    var retryAfterSeconds: Int?

    init(_ status: Int, _ code: String, _ detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    static func invalid(_ member: String, _ detail: String) -> AdminProblem {
        var problem = AdminProblem(422, "invalid", "\(member) \(detail)")
        problem.error = ("pointer", pointer(to: member), detail)
        return problem
    }

    private static func pointer(to member: String) -> String {
        let tokens = member.replacing("~", with: "~0").replacing("/", with: "~1").split(separator: ".")
        return "/" + tokens.joined(separator: "/")
    }

    static func invalidParameter(_ name: String, _ detail: String) -> AdminProblem {
        var problem = AdminProblem(422, "invalid", "\(name) \(detail)")
        problem.error = ("parameter", name, detail)
        return problem
    }

    static func notFound(_ detail: String) -> AdminProblem { AdminProblem(404, "not_found", detail) }

    init(_ error: GatewayError) {
        switch error.code {
        case .notFound: self.init(404, "not_found", error.reason)
        case .conflict: self.init(409, "conflict", error.reason)
        case .invalid: self.init(422, "invalid", error.reason)
        default:
            self.init(503, "storage", error.reason)
            retryAfterSeconds = 1
        }
        if let member = error.member { self.error = ("pointer", Self.pointer(to: member), error.reason) }
    }

    private static let titles = [
        400: "Bad request", 401: "Not signed in", 403: "Not allowed", 404: "Not found",
        405: "Method not allowed", 409: "Conflict", 412: "Changed meanwhile", 413: "Too large",
        415: "Not JSON",
        422: "Not valid", 428: "If-Match is missing", 429: "Too many attempts", 503: "Not now",
    ]

    static func title(_ status: Int) -> String { titles[status] ?? "Rejected" }

    func response(requestID: String) -> HTTPResponse {
        var members: JSONObject = [
            "type": .string("/admin/problems/" + code), "title": .string(Self.title(status)),
            "status": .integer(Int64(status)), "detail": .string(detail), "code": .string(code),
            "request_id": .string(requestID),
        ]
        if let error {
            members["errors"] = [
                .object([error.kind: .string(error.place), "detail": .string(error.detail)])
            ]
        }
        var response = HTTPResponse(
            status: status, headers: [("Content-Type", "application/problem+json")] + AdminAnswer.headers,
            body: JSONValue.object(members).bytes)
        response.code = code
        if status == 401 {
            response = response.with("WWW-Authenticate", "Bearer realm=\"countersign admin\"")
        }
        return retryAfterSeconds.map { response.with("Retry-After", String($0)) } ?? response
    }
}
