internal import CountersignCore
internal import CountersignJSON
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayStorage

/// A parsed request for reading events. It has no reference to the connection.
struct FollowingCall: Sendable {
    private static let longestBody = 16 * 1024
    /// The maximum size of the event name, user or claim in a filter, in bytes.
    static let longestText = 512
    /// The maximum size of a position or a lease id, in bytes.
    static let longestPosition = 64
    /// The latest start time of a consumer, in milliseconds since 1970.
    static let latest = 1 << 53

    let appID: String
    /// The consumer's name in the path; empty without one.
    let name: String
    /// The token of the request; empty if missing.
    let token: String
    /// Whether the client accepts JSON lines.
    let takesLines: Bool
    let takesGzip: Bool
    private let query: String?
    private let body: JSONObject

    init(_ request: HTTPRequest, _ parameters: [Substring], _ parsers: ParserPool) throws(FollowingError) {
        appID = String(parameters[0])
        name = parameters.count > 1 ? String(parameters[1]) : ""
        token = Self.token(of: request) ?? ""
        query = request.query
        takesLines = request.header("accept")?.contains("application/x-ndjson") == true
        takesGzip = request.takesGzip
        body = try Self.body(request, parsers)
    }

    /// The bearer token of a request; nil without one or if it is too long.
    static func token(of request: HTTPRequest) -> String? {
        let authorization = request.header("authorization") ?? ""
        guard authorization.utf8.count <= 512, authorization.lowercased().hasPrefix("bearer ") else {
            return nil
        }
        return String(authorization.dropFirst(7))
    }

    private static func body(
        _ request: HTTPRequest, _ parsers: ParserPool
    ) throws(FollowingError) -> JSONObject {
        guard request.method != "GET", request.method != "HEAD", !request.body.isEmpty else { return [:] }
        guard request.body.count <= longestBody else {
            throw FollowingError(413, "body_too_large", "the body may have at most \(longestBody) bytes")
        }
        switch parsers.read(request, { $0.value }) {
        case .failure(let invalid): throw FollowingError(400, "invalid_json", invalid.reason)
        case .success(.object(let members)): return members
        case .success: throw FollowingError(400, "invalid_json", "the body must be one JSON object")
        }
    }

    /// The members of the body as the audit log stores them.
    func members(except names: String...) -> JSONValue {
        .object(body.filter { member in !names.contains { member.key.utf8.elementsEqual($0.utf8) } })
    }

    // MARK: Query

    /// Rejects unknown and repeated parameters. Ignoring a misspelt filter would return other events.
    func checkParameters(_ names: [String]) throws(FollowingError) {
        var found: BytewiseSet = []
        for pair in (query ?? "").split(separator: "&") {
            let name = String(pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)[0])
            if names.contains(name) {
                guard found.insert(name).inserted else { throw .invalid(name, "appears more than once") }
                continue
            }
            throw .invalid(
                "the query",
                names.isEmpty
                    ? "takes no parameters here"
                    : "takes only the parameters " + names.joined(separator: ", "))
        }
    }

    func text(_ name: String, longest: Int) throws(FollowingError) -> String? {
        let isThere = query?.split(separator: "&").contains { $0 == name || $0.hasPrefix(name + "=") }
        guard isThere == true else { return nil }
        guard let text = QueryString.value(of: name, in: query) else {
            throw .invalid(name, "cannot be read")
        }
        guard 1...longest ~= text.utf8.count else { throw .invalid(name, "must have 1 to \(longest) bytes") }
        return text
    }

    func number(_ name: String, _ range: ClosedRange<Int>, else usual: Int) throws(FollowingError) -> Int {
        guard let text = try text(name, longest: 20) else { return usual }
        guard let number = Int(text), range.contains(number) else {
            throw .invalid(name, "must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func filterOfQuery() throws(FollowingError) -> EventFilter {
        try Self.filter(text)
    }

    /// `text` returns the value of a parameter or member, or nil. Throws if the value has more than `longest` bytes.
    private static func filter(
        _ text: (_ name: String, _ longest: Int) throws(FollowingError) -> String?
    ) throws(FollowingError) -> EventFilter {
        var filter = EventFilter()
        if let word = try text("verdict", 20) {
            filter.verdict = VerdictFilter(word)
            if filter.verdict == nil { throw .invalid("verdict", oneOf: VerdictFilter.words) }
        }
        filter.type = try text("type", 64)
        if let type = filter.type, !EventKind.storedWords.contains(type) {
            throw .invalid("type", oneOf: EventKind.storedWords)
        }
        filter.name = try text("name", longestText)
        filter.userID = try text("user", longestText)
        if let claim = try text("claim", longestText) {
            filter.claim = ClaimFilter(claim)
            if filter.claim == nil { throw .invalid("claim", ClaimFilter.problem) }
        }
        return filter
    }

    // MARK: Body

    /// Rejects unknown members. Ignoring a misspelt member would change the effect of the request.
    func checkMembers(_ names: String...) throws(FollowingError) {
        for name in body.keys.sorted() where !names.contains(name) {
            throw .invalid("the body", "takes only the members " + names.joined(separator: ", "))
        }
    }

    func has(_ name: String) -> Bool { body[name].map { $0 != .null } ?? false }

    func member(_ name: String, longest: Int) throws(FollowingError) -> String? {
        try Self.text(name, in: body, longest: longest)
    }

    private static func text(
        _ name: String, in members: JSONObject, longest: Int
    ) throws(FollowingError) -> String? {
        switch members[name] {
        case nil, .null: return nil
        case .string(let text) where 1...longest ~= text.utf8.count: return text
        default: throw .invalid(name, "must be a string of 1 to \(longest) bytes")
        }
    }

    func integer(_ name: String, _ range: ClosedRange<Int>) throws(FollowingError) -> Int? {
        switch body[name] {
        case nil, .null: return nil
        case .integer(let number) where range.contains(Int(number)): return Int(number)
        default: throw .invalid(name, "must be a number from \(range.lowerBound) to \(range.upperBound)")
        }
    }

    func flag(_ name: String) throws(FollowingError) -> Bool {
        switch body[name] {
        case nil, .null: return false
        case .bool(let flag): return flag
        default: throw .invalid(name, "must be true or false")
        }
    }

    func filterOfBody() throws(FollowingError) -> EventFilter {
        guard let given = body["filter"], given != .null else { return EventFilter() }
        guard case .object(let members) = given,
            members.keys.allSatisfy(["verdict", "type", "name", "user", "claim"].contains)
        else { throw .invalid("filter", "must be an object with verdict, type, name, user or claim") }
        return try Self.filter { name, longest throws(FollowingError) in
            try Self.text(name, in: members, longest: longest)
        }
    }

    /// The start position given by `from`, `time_ms` or `position`. Throws for more than one.
    func start(_ positions: EventPositions) throws(FollowingError) -> EventStart? {
        guard ["from", "time_ms", "position"].filter(has).count <= 1 else {
            throw .invalid("the body", "takes one of from, time_ms and position")
        }
        if let milliseconds = try integer("time_ms", 0...Self.latest) { return .time(Int64(milliseconds)) }
        if let text = try member("position", longest: Self.longestPosition) {
            do throws(EventPositions.Fault) {
                return .after(try positions.sequence(of: text, in: appID))
            } catch {
                throw FollowingError(error)
            }
        }
        switch try member("from", longest: 10) {
        case nil: return nil
        case "start": return .start
        case "end": return .end
        default: throw .invalid("from", "must be start or end")
        }
    }
}
