internal import Foundation

/// One thing that the admin API does. `/admin/api/openapi.json` is made of the same that answers.
struct AdminRoute: Sendable {
    /// Whether a change must name what it was made from (RFC 9110, section 13.1.1).
    enum Match: Sendable {
        case no
        /// With `If-Match` it must be right.
        case optional
        /// 428 without `If-Match`.
        case required
    }

    /// Which others it waits for.
    enum Lane: Sendable {
        case common
        /// A tenth of a second, because of scrypt.
        case password
        /// As long as a copy of all data takes.
        case backup
    }

    /// What is answered when all is well.
    enum Returns: Sendable {
        case json(AdminType, status: Int = 200)
        /// `items` and `next`.
        case list(AdminType)
        /// 204.
        case nothing
        /// What is no JSON, with its media types.
        case file([String])
    }

    /// A parameter of the query.
    struct Parameter: Sendable {
        let name: String
        let type: AdminType

        init(_ name: String, _ type: AdminType) {
            self.name = name
            self.type = type
        }
    }

    let method: String
    /// Below `/admin/api`.
    let path: String
    /// Who may ask; nil: anybody, also without a credential.
    let role: AdminRole?
    /// One line, without a full stop.
    let summary: String
    /// The parameters that it takes; others are refused.
    let query: [Parameter]
    /// The members that it takes; nil takes no body.
    let body: AdminType?
    let match: Match
    let returns: Returns
    let lane: Lane
    let answer: @Sendable (AdminCall) throws -> HTTPResponse

    /// Whether it can be asked again under the same `Idempotency-Key`: what makes something, for who has a credential.
    var takesIdempotencyKey: Bool { method == "POST" && role != nil }

    init(
        _ method: String, _ path: String, _ role: AdminRole?, _ summary: String, query: [Parameter] = [],
        body: AdminType? = nil, match: Match = .no, lane: Lane = .common, _ returns: Returns,
        answer: @escaping @Sendable (AdminCall) throws -> HTTPResponse
    ) {
        self.method = method
        self.path = path
        self.role = role
        self.summary = summary
        if case .list = returns {
            self.query = query + [.init("cursor", .text(longest: 512)), .init("limit", .integer(1...500))]
        } else {
            self.query = query
        }
        self.body = body
        self.match = match
        self.lane = lane
        self.returns = returns
        self.answer = answer
    }
}

extension AdminRoute {
    /// Answers a request of somebody who may send it.
    func respond(
        _ request: AdminRequest, _ identity: AdminIdentity, _ directory: AppDirectory, at milliseconds: Int64,
        isStillAllowed: @escaping @Sendable () -> Bool = { true }
    ) throws -> HTTPResponse {
        let actor = Operator(name: identity.name, role: identity.role.rawValue)
        return try answer(
            AdminCall(
                request: request, route: self, query: try parameters(of: request.query), identity: identity,
                directory: directory.acting(as: actor), nowMilliseconds: milliseconds,
                isStillAllowed: isStillAllowed))
    }

    /// Reads the query of a request.
    ///
    /// - Returns: The parameters that are not empty.
    /// - Throws: 422 for one that is not known, stands twice or is not as it must be.
    func parameters(of query: String?) throws(AdminProblem) -> [String: String] {
        var found: [String: String] = [:]
        for pair in (query ?? "").split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let parameter = self.query.first(where: { $0.name == name }) else {
                let known = self.query.map(\.name).joined(separator: ", ")
                throw .invalidParameter(
                    name, known.isEmpty ? "is not known; there are none" : "is not known; there are \(known)")
            }
            let text = parts.count > 1 ? parts[1].replacing("+", with: "%20").removingPercentEncoding : ""
            guard let text, found[name] == nil else {
                throw .invalidParameter(name, "must stand once, as percent-encoded UTF-8")
            }
            if text.isEmpty { continue }
            try parameter.check(text)
            found[name] = text
        }
        return found
    }
}

extension AdminRoute.Parameter {
    fileprivate func check(_ text: String) throws(AdminProblem) {
        switch type {
        case .integer(let range):
            guard let number = Int64(text), range.contains(number) else {
                throw .invalidParameter(
                    name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
            }
        case .choice(let words):
            guard text.utf8.count <= 64, words.contains(text) else {
                throw .invalidParameter(name, "must be one of \(words.joined(separator: ", "))")
            }
        case .text(let longest):
            guard text.utf8.count <= longest else {
                throw .invalidParameter(name, "may have \(longest) bytes")
            }
        default: preconditionFailure("a parameter is a text, a word or a number")
        }
    }
}
