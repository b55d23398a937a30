internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// The table of what can be wrong with a token.
struct ErrorCodeRoutes: Sendable {
    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/error-codes", .viewer, "List what can be wrong with a token",
                .json(.all(["items": .list(Self.code), "next": .nullable(.string)]))
            ) { call in
                call.answer(["items": .array(AuthErrorCode.all.map(Self.json)), "next": .null])
            }
        ]
    }

    private static let code = JSONShape.named(
        "ErrorCode",
        .all([
            "code": .count, "reason": .string, "title": .string, "fix": .string, "causes": .list(.string),
            "docs": .string,
        ]))

    private static func json(_ code: AuthErrorCode) -> JSONValue {
        [
            "code": .integer(Int64(code.rawValue)), "reason": .string(code.reason),
            "title": .string(code.summary), "fix": .string(code.fix),
            "causes": .array(code.likelyCauses.map { .string($0) }),
            "docs": .string("docs/error-codes.md#\(code.rawValue)-\(code.reason.lowercased())"),
        ]
    }
}
