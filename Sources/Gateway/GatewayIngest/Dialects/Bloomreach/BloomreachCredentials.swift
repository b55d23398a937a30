internal import CountersignCore
internal import Foundation
internal import GatewayHTTP

struct BloomreachCredentials {
    /// The content of `Authorization`.
    enum Opening {
        case apiKey(String)
        case customerToken(String)
        case nothing
    }

    let opening: Opening
    /// The signed-user token that may accompany an API key.
    let user: Credential

    init(_ request: HTTPRequest) {
        let parts = (request.header("authorization") ?? "").split(separator: " ", maxSplits: 1)
        let value = parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : ""
        opening =
            switch parts.first?.lowercased() {
            case "token" where !value.isEmpty: .apiKey(value)
            case "bearer": .customerToken(value)
            default: .nothing
            }
        user = Credential(.userToken, request.header("x-countersign-signature"))
    }
}
