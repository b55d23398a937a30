internal import CountersignCore

/// The first password, signing in and out.
struct SignInRoutes: Sendable {
    /// Whether browsers reach the gateway by HTTPS.
    let isSecure: Bool
    let throttle = SignInThrottle()

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/setup", nil, "Say whether the first password is still to be set",
                .json(.all(["needed": .bool]))
            ) { call in
                call.answer(["needed": .bool(try call.directory.users().isEmpty)])
            },
            AdminRoute(
                "POST", "/setup", nil, "Set an owner's password with a one-time link",
                body: .object([
                    .must("token", .text(longest: 128)), .must("name", .text(longest: 64)),
                    .must("password", Self.password),
                ]), lane: .password, .json(Self.session, status: 201), answer: setUp),
            AdminRoute(
                "POST", "/session", nil, "Sign in",
                body: .object([.must("name", .text(longest: 1_024)), .must("password", Self.password)]),
                lane: .password, .json(Self.session), answer: signIn),
            Self.whoIs,
            AdminRoute(
                "PUT", "/session/password", .viewer, "Change one's own password",
                body: .object([
                    .must("current_password", Self.password), .must("password", Self.password),
                ]), lane: .password, .nothing, answer: changePassword),
            AdminRoute("DELETE", "/session", .viewer, "Sign out", .nothing) { call in
                if let session = call.identity.session { try call.directory.closeSession(session.token) }
                let (name, value) = AdminCookie.field("", isSecure: isSecure)
                return call.noContent.with(name, value)
            },
        ]
    }

    static let password = AdminType.text(longest: PasswordHash.range.upperBound)

    private static let session = AdminType.named(
        "Session",
        .all([
            "user": .all(["name": .string, "role": .choice(of: AdminRole.self)]),
            "csrf": .nullable(.string), "expires_ms": .nullable(.milliseconds),
        ]))

    /// Who asks, for page and programs alike.
    static let whoIs = AdminRoute("GET", "/session", .viewer, "Say who is signed in", .json(Self.session)) {
        call in
        call.answer(Self.json(call.identity))
    }

    /// Reads a password that is about to be set.
    static func password(_ body: AdminBody) throws -> PasswordHash? {
        guard let text = body.optionalText("password") else { return nil }
        guard PasswordHash.range.contains(text.utf8.count) else {
            throw AdminProblem.invalid("password", "must have 12 to 1024 bytes")
        }
        return PasswordHash(text)
    }

    private func setUp(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let token = try body.text("token")
        let name = try body.text("name")
        try begin(call, name: SignInThrottle.oneTimeLink)
        guard try call.directory.isSetupToken(token, at: call.nowMilliseconds) else {
            throw AdminProblem(
                403, "forbidden",
                "the link was used or is older than 30 minutes; start the gateway again while there is no user, "
                    + "or run `countersign admin reset`")
        }
        throttle.succeed(name: SignInThrottle.oneTimeLink, address: call.request.clientAddress)
        guard let password = try Self.password(body) else {
            throw AdminProblem.invalid("password", "is missing")
        }
        let actor = Operator(name: name, role: AdminRole.owner.rawValue)
        try call.directory.acting(as: actor).setUp(
            token: token, name: name, password: password, at: call.nowMilliseconds)
        return try open(call, name, .owner, status: 201)
    }

    private func signIn(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let name = try body.text("name")
        let password = try body.text("password")
        guard let user = try user(name, password, call) else {
            throw AdminProblem(401, "unauthenticated", "the name or the password is not right")
        }
        return try open(call, user.name, user.role, status: 200)
    }

    /// Needs the session's cookie: who only has the open page does not know the password.
    private func changePassword(_ call: AdminCall) throws -> HTTPResponse {
        guard let session = call.identity.session else {
            throw AdminProblem(409, "conflict", "an API token has no password: sign in")
        }
        let body = try call.body()
        let current = try body.text("current_password")
        let name = call.identity.name
        guard try user(name, current, call) != nil else {
            throw AdminProblem.invalid("current_password", "is not right")
        }
        guard let password = try Self.password(body) else {
            throw AdminProblem.invalid("password", "is missing")
        }
        try call.directory.changeUser(name, role: nil, password: password, keeping: session.token)
        return call.noContent
    }

    /// The user with this name and password; nil, after the same time, when there is none.
    private func user(_ name: String, _ password: String, _ call: AdminCall) throws -> AdminUser? {
        let address = call.request.clientAddress
        try begin(call, name: name)
        let user = try call.directory.users().first { $0.name == name }
        let isRight = (user?.password ?? PasswordHash.ofNobody).matches(password)
        if let user, isRight {
            throttle.succeed(name: name, address: address)
            return user
        }
        if throttle.isBlocked(name: name, address: address, at: call.nowMilliseconds) {
            try call.directory.noteBlockedSignIn(name, from: address)
        }
        return nil
    }

    private func begin(_ call: AdminCall, name: String) throws {
        guard
            let seconds = throttle.begin(
                name: name, address: call.request.clientAddress, at: call.nowMilliseconds)
        else { return }
        var problem = AdminProblem(429, "throttled", "too many wrong attempts; try again in \(seconds) s")
        problem.retryAfterSeconds = seconds
        throw problem
    }

    private func open(
        _ call: AdminCall, _ name: String, _ role: AdminRole, status: Int
    ) throws -> HTTPResponse {
        let token = try call.directory.openSession(for: name, at: call.nowMilliseconds)
        let identity = AdminIdentity(
            name: name, role: role, session: (token, call.nowMilliseconds + AppDirectory.sessionMilliseconds))
        let (field, value) = AdminCookie.field(token, isSecure: isSecure)
        return call.answer(Self.json(identity), status: status).with(field, value)
    }

    private static func json(_ identity: AdminIdentity) -> JSONValue {
        [
            "user": ["name": .string(identity.name), "role": .string(identity.role.rawValue)],
            "csrf": identity.csrfToken.map { .string($0) } ?? .null,
            "expires_ms": identity.session.map { .integer($0.expiresMilliseconds) } ?? .null,
        ]
    }
}
