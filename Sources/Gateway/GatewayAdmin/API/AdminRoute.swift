internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct AdminRoute: Sendable {
    private(set) var operation: AdminOperation
    let answer: @Sendable (AdminCall) throws -> HTTPResponse

    init(
        _ method: String, _ path: String, _ role: AdminRole?, _ summary: String,
        query: [JSONMember] = [], body: JSONShape? = nil,
        match: AdminOperation.Match = .no,
        queueClass: AdminOperation.QueueClass = .common, rejections: [Int] = [],
        _ returns: AdminOperation.Returns,
        answer: @escaping @Sendable (AdminCall) throws -> HTTPResponse
    ) {
        var query = query
        if case .list = returns {
            query += [.may("cursor", .text(longest: 512)), .may("limit", .integer(1...500))]
        }
        operation = AdminOperation(
            method: method, path: path, role: role, summary: summary, query: query, body: body, match: match,
            returns: returns, queueClass: queueClass, rejections: rejections)
        self.answer = answer
    }

    static func delete(
        _ path: String, _ role: AdminRole, _ summary: String, query: [JSONMember] = [],
        match: AdminOperation.Match = .no, perform: @escaping @Sendable (AdminCall) throws -> Void
    ) -> AdminRoute {
        AdminRoute("DELETE", path, role, summary, query: query, match: match, .nothing) { call in
            try perform(call)
            return call.noContent
        }
    }

    /// Returns the route with this class. A class other than `common` is left unchanged.
    func on(_ queueClass: AdminOperation.QueueClass) -> AdminRoute {
        var route = self
        if operation.queueClass == .common { route.operation.queueClass = queueClass }
        return route
    }

    func respond(
        _ request: AdminRequest, _ identity: AdminIdentity, _ directory: AppDirectory, at milliseconds: Int64,
        isStillAllowed: @escaping @Sendable () -> Bool = { true }
    ) throws -> HTTPResponse {
        // Rejects a body that the route would ignore.
        if operation.body == nil, !request.body.isEmpty { _ = try AdminBody(request.body, .object([])) }
        let actor = Operator(name: identity.name, role: identity.role.rawValue)
        return try answer(
            AdminCall(
                request: request, operation: operation,
                query: try operation.parameters(of: request.query), identity: identity,
                directory: directory.acting(as: actor), nowMilliseconds: milliseconds,
                isStillAllowed: isStillAllowed))
    }
}
