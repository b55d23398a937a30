internal import CountersignCore
internal import GatewayModel

struct ErrorCodeRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/error-codes", .viewer, "List the error codes of tokens",
                .json(.page(of: Self.code.shape))
            ) { call in
                call.answer(all: AuthErrorCode.all, Self.code)
            }
        ]
    }

    private static let code = AnswerShape<AuthErrorCode>(
        named: "ErrorCode", .init("code", \.rawValue), .init("reason", \.reason), .init("title", \.summary),
        .init("fix", \.fix), .init("causes", \.likelyCauses),
        .init("docs") { "docs/reference/error-codes.md#\($0.rawValue)-\($0.reason.lowercased())" })
}
