internal import CountersignCore
internal import CountersignCrypto
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct SignInRoutes: Sendable {
    let isSecure: Bool
    let passwordCost: Scrypt.Cost
    let throttle: SignInThrottle

    init(isSecure: Bool, passwordCost: Scrypt.Cost, cluster: (any Cluster)?) {
        self.isSecure = isSecure
        self.passwordCost = passwordCost
        throttle = SignInThrottle(cluster: cluster)
    }

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/setup", nil, "Show whether the first password has yet to be set",
                .json(.all(["needed": .bool]))
            ) { call in call.answer(["needed": .bool(try call.directory.admins.users().isEmpty)]) },
            AdminRoute(
                "POST", "/setup", nil, "Set an owner's password with a one-time link",
                body: .object([
                    .must("token", .text(longest: 128)), .must("name", .text(longest: 64)),
                    .must("password", Self.password),
                ]), queueClass: .password, .json(Self.session.shape, status: 201), answer: setUp),
            AdminRoute(
                "POST", "/session", nil, "Sign in",
                body: .object([
                    .must("name", .text(longest: 1_024)), .must("password", Self.password),
                    .may("code", .text(longest: 64)),
                ]), queueClass: .password, .json(Self.session.shape), answer: signIn), Self.whoIs,
            AdminRoute(
                "PUT", "/session/password", .viewer, "Change your own password",
                body: .object([.must("current_password", Self.password), .must("password", Self.password)]),
                queueClass: .password, .nothing, answer: changePassword),
            AdminRoute("DELETE", "/session", .viewer, "Sign out", .nothing) { call in
                if let session = call.identity.session {
                    try call.directory.admins.closeSignInSession(session.token)
                }
                let (name, value) = AdminCookie.field("", isSecure: isSecure)
                return call.noContent.with(name, value)
            },
        ]
    }

    static let password = JSONShape.raw(longest: PasswordHash.range.upperBound)

    /// The caller. `factor` is nil for an API token.
    private typealias SignedIn = (identity: AdminIdentity, factor: SecondFactor?)
    private typealias SecondFactor = (user: AdminUser, mustEnrol: Bool)

    private static let user = AnswerShape<AdminIdentity>(
        .init("name", \.name), .init("role", .choice(of: AdminRole.self), \.role.rawValue))

    private static let factor = AnswerShape<SecondFactor>(
        .init("on") { $0.user.hasSecondFactor }, .init("setup_required") { $0.mustEnrol },
        .init("recovery_codes") { $0.user.recoveryCodes })

    private static let session = AnswerShape<SignedIn>(
        named: "SignInSession", .object("user", user) { $0.identity },
        .init("csrf") { $0.identity.csrfToken },
        .time("expires_ms") { $0.identity.session?.expiresMilliseconds },
        .init("second_factor", .nullable(factor.shape)) { $0.factor.map(factor.json) })

    static let whoIs = AdminRoute(
        "GET", "/session", .viewer, "Show who is signed in", .json(Self.session.shape)
    ) { call in call.answer(try Self.json(call.identity, call)) }

    /// Reads a new password. Throws 422 if it is too easy to guess.
    static func password(_ body: AdminBody, of user: String, cost: Scrypt.Cost) throws -> PasswordHash? {
        guard let text: String = body.value("password") else { return nil }
        if let fault = PasswordPolicy.fault(text, of: user) { throw AdminProblem.invalid("password", fault) }
        return PasswordHash(text, cost: cost)
    }

    private func setUp(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let token = try body.text("token")
        let name = try body.text("name")
        try begin(call, name: SignInThrottle.oneTimeLink)
        guard try call.directory.admins.isSetupToken(token, at: call.nowMilliseconds) else {
            throw AdminProblem(
                403, "forbidden",
                "the link has been used or replaced, or is older than 30 minutes; ask the gateway's operator for a new one"
            )
        }
        throttle.succeed(name: SignInThrottle.oneTimeLink, address: call.request.clientAddress)
        guard let password = try Self.password(body, of: name, cost: passwordCost) else {
            throw AdminProblem.invalid("password", "is missing")
        }
        let actor = Operator(name: name, role: AdminRole.owner.rawValue)
        try call.directory.acting(as: actor).admins.setUp(
            token: token, name: name, password: password, at: call.nowMilliseconds)
        return try open(call, name, .owner, status: 201)
    }

    private func signIn(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let name = try body.text("name")
        let password = try body.text("password")
        let address = call.request.clientAddress
        let (found, counted) = try user(name, password, call)
        guard let user = found else {
            throw AdminProblem(401, "unauthenticated", "the name or the password is wrong")
        }
        if user.hasSecondFactor {
            guard let code: String = body.value("code"), !code.isEmpty else {
                // Counts neither as a failure nor as a success. A success would let an attacker with the
                // password reset the counter; a failure would block the user before the code is sent.
                throttle.takeBack(name: counted, address: address)
                throw AdminProblem(
                    401, "second_factor_required", "send the code from the authenticator app as well")
            }
            let actor = Operator(name: user.name, role: user.role.rawValue)
            let isRight = try comparing(call, counted) {
                try call.directory.acting(as: actor).admins.useSecondFactor(
                    code, of: user.name, at: call.nowMilliseconds)
            }
            guard isRight else {
                try noteIfBlocked(name, counted, call)
                throw AdminProblem(401, "unauthenticated", "the code is wrong or has already been used")
            }
        }
        throttle.succeed(name: counted, address: address)
        return try open(call, user.name, user.role, status: 200)
    }

    /// The session's user, after checking the password in the body again, so that an open page alone does not
    /// suffice. Throws 409 for an API token, 422 for a wrong password, and 429.
    func confirmPassword(_ call: AdminCall, _ member: String = "password") throws -> String {
        _ = try Self.session(of: call)
        let name = call.identity.name
        let (found, counted) = try user(name, try call.body().text(member), call)
        guard found != nil else { throw AdminProblem.invalid(member, "is wrong") }
        throttle.succeed(name: counted, address: call.request.clientAddress)
        return name
    }

    /// Wrong codes count together with wrong passwords. `body` returns nil for a wrong code. Throws 429 after too many
    /// attempts.
    func tryCode<Value>(_ call: AdminCall, _ body: (_ user: String) throws -> Value?) throws -> Value? {
        let name = call.identity.name
        let user = try call.directory.admins.users().first { $0.name == name }
        let counted = Self.counted(name, user)
        try begin(call, name: counted)
        let value = try comparing(call, counted) { try body(name) }
        if value == nil {
            try noteIfBlocked(name, counted, call)
        } else {
            throttle.succeed(name: counted, address: call.request.clientAddress)
        }
        return value
    }

    /// Returns the result of `body`. If `body` throws, it has compared no code, so the attempt counts neither
    /// as a success nor as a failure.
    private func comparing<Value>(
        _ call: AdminCall, _ counted: String, _ body: () throws -> Value
    ) throws -> Value {
        do {
            return try body()
        } catch {
            throttle.takeBack(name: counted, address: call.request.clientAddress)
            throw error
        }
    }

    /// The key under which attempts are counted: a name and, for an existing user, the time of creation. So
    /// attempts of a deleted user do not count for a new user of the same name.
    private static func counted(_ name: String, _ user: AdminUser?) -> String {
        user.map { "\($0.createdMilliseconds):\($0.name)" } ?? name
    }

    static func session(of call: AdminCall) throws -> String {
        guard let session = call.identity.session else {
            throw AdminProblem(409, "conflict", "an API token has no password and no second factor: sign in")
        }
        return session.token
    }

    private func changePassword(_ call: AdminCall) throws -> HTTPResponse {
        let name = try confirmPassword(call, "current_password")
        guard let password = try Self.password(try call.body(), of: name, cost: passwordCost) else {
            throw AdminProblem.invalid("password", "is missing")
        }
        try call.directory.admins.changeUser(
            name, role: nil, password: password, keeping: try Self.session(of: call))
        return call.noContent
    }

    /// The user with this name and password; otherwise nil, after the same duration. The attempt counts as
    /// failed for `counted` until the caller calls `succeed` or `takeBack` of the throttle.
    private func user(
        _ name: String, _ password: String, _ call: AdminCall
    ) throws -> (user: AdminUser?, counted: String) {
        let user = try call.directory.admins.users().first { $0.name == name }
        let counted = Self.counted(name, user)
        try begin(call, name: counted)
        let isRight = (user?.password ?? .ofNobody(cost: passwordCost)).matches(password)
        if let user, isRight { return (user, counted) }
        try noteIfBlocked(name, counted, call)
        return (nil, counted)
    }

    private func noteIfBlocked(_ name: String, _ counted: String, _ call: AdminCall) throws {
        let address = call.request.clientAddress
        if throttle.isBlocked(name: counted, address: address, at: call.nowMilliseconds) {
            try call.directory.admins.noteBlockedSignIn(name, from: address)
        }
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
        let token = try call.directory.admins.openSignInSession(for: name, at: call.nowMilliseconds)
        let identity = AdminIdentity(
            name: name, role: role, session: (token, call.nowMilliseconds + AdminStore.signInMilliseconds))
        let (field, value) = AdminCookie.field(token, isSecure: isSecure)
        return call.answer(try Self.json(identity, call), status: status).with(field, value)
    }

    private static func json(_ identity: AdminIdentity, _ call: AdminCall) throws -> JSONValue {
        let session = try identity.session.flatMap { session in
            try call.directory.admins.signInSession(session.token, at: call.nowMilliseconds)
        }
        return Self.session.json((identity, session.map { user, _, mustEnrol in (user, mustEnrol) }))
    }
}
