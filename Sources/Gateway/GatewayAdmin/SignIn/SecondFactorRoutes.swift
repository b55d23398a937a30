internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct SecondFactorRoutes: Sendable {
    let signIn: SignInRoutes

    var own: [AdminRoute] {
        [
            AdminRoute(
                "POST", "/session/second-factor", .viewer, "Start setting up your own second factor",
                body: Self.password, queueClass: .password,
                .json(.all(["secret": .string, "uri": .string, "qr": .list(.string)]), status: 201)
            ) { call in
                let name = try signIn.confirmPassword(call)
                let password = OneTimePassword()
                try call.directory.admins.beginSecondFactor(password, of: name, at: call.nowMilliseconds)
                let uri = password.uri(user: name, host: call.request.host)
                return call.answer(
                    [
                        "secret": .string(password.text), "uri": .string(uri),
                        "qr": (QRCode.rows(uri) ?? []).jsonValue,
                    ], status: 201)
            },
            AdminRoute(
                "POST", "/session/second-factor/confirm", .viewer,
                "Turn on your own second factor with its first code",
                body: .object([.must("code", .text(longest: 64))]), .json(Self.codes)
            ) { call in
                let session = try SignInRoutes.session(of: call)
                let code = try call.body().text("code").replacing(" ", with: "")
                let codes = try signIn.tryCode(call) { name in
                    try call.directory.admins.confirmSecondFactor(
                        code, of: name, at: call.nowMilliseconds, keeping: session)
                }
                guard let codes else {
                    throw AdminProblem.invalid("code", "is wrong; is the device's clock right?")
                }
                return Self.answer(codes, call)
            },
            AdminRoute(
                "POST", "/session/second-factor/recovery-codes", .viewer,
                "Create new recovery codes and invalidate the earlier ones", body: Self.password,
                queueClass: .password, .json(Self.codes)
            ) { call in
                let name = try signIn.confirmPassword(call)
                return Self.answer(try call.directory.admins.renewRecoveryCodes(of: name), call)
            },
            AdminRoute(
                "POST", "/session/second-factor/disable", .viewer, "Turn off your own second factor",
                body: Self.password, queueClass: .password, .nothing
            ) { call in
                try call.directory.admins.disableSecondFactor(of: try signIn.confirmPassword(call))
                return call.noContent
            },
        ]
    }

    static var others: [AdminRoute] {
        [
            AdminRoute.delete(
                "/users/{name}/second-factor", .owner, "Remove the second factor of a user who has lost it"
            ) { call in try call.directory.admins.resetSecondFactor(of: call[0]) },
            AdminRoute(
                "GET", "/sign-in-rules", .owner, "Show whether signing in requires a second factor",
                .json(Self.rules.shape)
            ) { call in
                let rules = Self.rules.json(try call.directory.admins.requiresSecondFactor())
                return call.answer(rules, tag: rules)
            },
            AdminRoute(
                "PUT", "/sign-in-rules", .owner, "Set whether signing in requires a second factor",
                body: .object([.must("second_factor_required", .bool)]),
                match: .required, .json(Self.rules.shape)
            ) { try $0.changing(setRules) },
        ]
    }

    // MARK: Shapes

    private static let password = JSONShape.object([.must("password", SignInRoutes.password)])
    private static let codes = JSONShape.all(["recovery_codes": .list(.string)])
    private static let rules = AnswerShape<Bool>(.init("second_factor_required") { $0 })

    // MARK: Answers

    private static func setRules(_ call: AdminCall) throws -> HTTPResponse {
        try call.checkMatch(Self.rules.json(try call.directory.admins.requiresSecondFactor()))
        let isRequired = try call.body().value("second_factor_required") ?? false
        let name = call.identity.name
        if isRequired, call.identity.session != nil,
            try !call.directory.admins.users().contains(where: { $0.name == name && $0.hasSecondFactor })
        {
            throw AdminProblem(
                409, "conflict", "set up your own second factor first, so that you are not locked out")
        }
        try call.directory.admins.setRequiresSecondFactor(isRequired)
        let rules = Self.rules.json(isRequired)
        return call.answer(rules, tag: rules)
    }

    private static func answer(_ codes: [String], _ call: AdminCall) -> HTTPResponse {
        call.answer(["recovery_codes": codes.jsonValue])
    }
}
