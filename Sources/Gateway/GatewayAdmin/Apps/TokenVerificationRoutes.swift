internal import CountersignCore
internal import CountersignJOSE
internal import GatewayIngest
internal import GatewayModel

struct TokenVerificationRoutes: Sendable {
    let registry: AppRegistry

    var all: [AdminRoute] {
        [
            AdminRoute(
                "POST", "/apps/{app}/tokens/verify", .viewer,
                "Verify a token with an app's keys and policy",
                body: .object([.must("token", .raw(longest: 65_536)), .may("user", .text(longest: 512))]),
                .json(VerificationReport.jsonShape)
            ) { call in
                let body = try call.body()
                let user: String? = body.value("user")
                // Outside a gateway, nothing else loads the apps.
                try registry.refresh()
                guard let app = registry.app(id: try call.app().id) else {
                    throw AdminProblem.notFound("the app is not loaded yet")
                }
                let report = app.report(
                    on: AdmissionRequest(
                        credential: Credential(
                            user == nil ? .accessToken : .userToken, try body.text("token")),
                        userIDs: user.map { [$0] } ?? []),
                    at: Milliseconds(call.nowMilliseconds).seconds)
                return call.answer(report.json(withUser: user != nil))
            }
        ]
    }
}
