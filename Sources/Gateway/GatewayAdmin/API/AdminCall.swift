internal import CountersignCore
internal import CountersignCrypto
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct AdminCall: Sendable {
    let request: AdminRequest
    let operation: AdminOperation
    /// The validated query parameters.
    let query: BytewiseDictionary<String>
    let identity: AdminIdentity
    /// The apps. Changes are audited under the caller's name.
    var directory: AppDirectory
    let nowMilliseconds: Int64
    /// Whether the caller still has access, for streamed responses. May block on the disk.
    let isStillAllowed: @Sendable () -> Bool

    subscript(position: Int) -> String { request.parameters[position] }

    func app() throws -> App { try directory.app(id: self[0]) }

    func query(_ name: String) -> String? {
        assert(operation.query.contains { $0.name == name }, "the route does not declare \(name)")
        return query[name]
    }

    func integer(_ name: String) -> Int64? { query(name).flatMap { Int64($0) } }

    func body() throws -> AdminBody {
        assert(operation.body != nil, "the route does not declare a body")
        guard request.isJSON else {
            throw AdminProblem(415, "unsupported_media_type", "send the body as application/json")
        }
        return try AdminBody(request.body, operation.body ?? .object([]))
    }

    /// Runs a change in one transaction, so that no other change occurs between the reads and the writes of
    /// `change`. Data outside the control database, such as counts, must be read before or afterwards.
    func changing<Result>(_ change: (AdminCall) throws -> Result) throws -> Result {
        try directory.transaction { directory in
            var call = self
            call.directory = directory
            return try change(call)
        }
    }

    /// Checks `If-Match` against the tags of the current state; nil if the resource does not exist. Throws 428 if
    /// the field is missing and required, and 412 if it does not match. Call it only in ``changing(_:)``. Otherwise
    /// another change could occur before the write.
    func checkMatch(_ current: JSONValue?, _ more: JSONValue...) throws {
        assert(operation.match != .no, "the route does not declare If-Match")
        assert(directory.isInTransaction, "If-Match is checked outside the transaction that writes")
        guard let given = request.ifMatch else {
            if current == nil || operation.match == .optional { return }
            throw AdminProblem(
                428, "precondition_required", "send If-Match with the ETag of what you have read")
        }
        guard let current else {
            throw AdminProblem(
                412, "stale", "the resource does not exist: send the request without If-Match to create it")
        }
        guard EntityTags(given).match(([current] + more).map(Self.tag)) else {
            throw AdminProblem(412, "stale", "the resource has changed since it was read: read it again")
        }
    }

    /// Throws 403 if a caller below owner allows private addresses for `url`. `before` is the URL for which they are
    /// already allowed.
    func checkPrivateAddress(_ url: String, before: String?) throws {
        guard identity.role < .owner, url != before else { return }
        throw AdminProblem(
            403, "forbidden",
            "this needs the role owner: allow_private opens the inner network to the gateway's requests")
    }

    static func tag(_ value: JSONValue) -> String {
        "\"\(Base64URL.encode(Array(SHA256.digest(value.bytes).prefix(12))))\""
    }

    // MARK: Answers

    func answer(json: [UInt8], status: Int = 200) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("Content-Type", "application/json")] + AdminAnswer.headers, body: json)
    }

    func answer(_ value: JSONValue, status: Int = 200, tag: JSONValue? = nil) -> HTTPResponse {
        let response = answer(json: value.bytes, status: status)
        return tag.map { response.with("ETag", Self.tag($0)) } ?? response
    }

    var noContent: HTTPResponse { HTTPResponse(status: 204, headers: AdminAnswer.headers, body: []) }
}
