internal import CountersignCore
internal import CountersignJOSE

/// Who sends a request to the admin API.
struct AdminIdentity: Sendable {
    let name: String
    let role: AdminRole
    /// The session; nil for a token.
    var session: (token: String, expiresMilliseconds: Int64)?

    /// What a page must send with every change: known only to who knows the cookie.
    var csrfToken: String? {
        session.map {
            Base64URL.encode(HMACSHA256.authenticate(Array("csrf".utf8), key: Array($0.token.utf8)))
        }
    }
}

/// One request to the admin API that may be answered.
struct AdminCall: Sendable {
    let request: AdminRequest
    let identity: AdminIdentity
    /// The apps, changed in the name of who asks.
    let directory: AppDirectory
    let nowMilliseconds: Int64

    /// What stood for a part in braces of the path.
    subscript(position: Int) -> String { request.parameters[position] }

    /// The app that the path begins with.
    func app() throws -> App { try directory.app(id: self[0]) }

    func query(_ name: String) -> String? {
        QueryString.value(of: name, in: request.query).flatMap { $0.isEmpty ? nil : $0 }
    }

    func integer(_ name: String, _ range: ClosedRange<Int64>) throws -> Int64? {
        guard let text = query(name) else { return nil }
        guard let number = Int64(text), range.contains(number) else {
            throw AdminProblem.invalid(
                name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// How many items a list may have.
    func limit() throws -> Int { Int(try integer("limit", 1...500) ?? 50) }

    func body(_ known: String...) throws -> AdminBody { try AdminBody(request.body, known: known) }

    /// Refuses a change that was made from something else than what there is now.
    ///
    /// - Parameters:
    ///   - current: What GET answers, without what changes by itself.
    ///   - isOptional: Whether the change may come without `If-Match`.
    /// - Throws: 428 or 412.
    func checkMatch(_ current: JSONValue, isOptional: Bool = false) throws {
        guard let given = request.ifMatch else {
            if isOptional { return }
            throw AdminProblem(
                428, "precondition_required", "send If-Match with the ETag of what you have read")
        }
        let tags = given.split(separator: ",").map { $0.drop { $0 == " " } }
        guard tags.contains("*") || tags.contains(Substring(Self.tag(current))) else {
            throw AdminProblem(412, "stale", "somebody has changed it meanwhile: read it again")
        }
    }

    static func tag(_ value: JSONValue) -> String {
        "\"\(Base64URL.encode(Array(SHA256.digest(value.bytes).prefix(12))))\""
    }

    // MARK: Answers

    func answer(_ value: JSONValue, status: Int = 200, tag: JSONValue? = nil) -> HTTPResponse {
        let response = HTTPResponse(
            status: status, headers: [("Content-Type", "application/json")] + AdminAPI.headers,
            body: value.bytes)
        return tag.map { response.with("ETag", Self.tag($0)) } ?? response
    }

    func list(_ items: [JSONValue], next: String? = nil) -> HTTPResponse {
        answer(["items": .array(items), "next": next.map { .string($0) } ?? .null])
    }

    var noContent: HTTPResponse { HTTPResponse(status: 204, headers: AdminAPI.headers, body: []) }
}

/// One thing that the admin API does.
struct AdminRoute: Sendable {
    let method: String
    /// Below `/admin/api`.
    let path: String
    /// Who may ask; nil: anybody, also without a credential.
    let role: AdminRole?
    /// One line, without a full stop.
    let summary: String
    /// Whether it takes a tenth of a second because of a password.
    var hashesPassword = false
    let answer: @Sendable (AdminCall) throws -> HTTPResponse

    init(
        _ method: String, _ path: String, _ role: AdminRole?, _ summary: String, hashesPassword: Bool = false,
        answer: @escaping @Sendable (AdminCall) throws -> HTTPResponse
    ) {
        self.method = method
        self.path = path
        self.role = role
        self.summary = summary
        self.hashesPassword = hashesPassword
        self.answer = answer
    }
}
