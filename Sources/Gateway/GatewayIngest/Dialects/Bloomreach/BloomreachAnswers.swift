internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel

/// A project's responses that are equal for all clients, encoded once when the project changes.
struct BloomreachAnswers: Sendable {
    let consents: HTTPResponse
    private let allMessages: HTTPResponse
    private let plainMessages: HTTPResponse

    init(_ project: Project) {
        consents = Self.list("results", project.consentCategories)
        allMessages = Self.list("data", project.inAppMessages)
        plainMessages = Self.list(
            "data", project.inAppMessages.filter { $0.members["is_rich_text"] != true })
    }

    /// Clients with `compatibility` below 3 decode all messages or none, so they do not receive rich text.
    func inAppMessages(query: String?) -> HTTPResponse {
        let version = QueryString.value(of: "compatibility", in: query).flatMap { Int($0) } ?? 1
        return version >= 3 ? allMessages : plainMessages
    }

    private static func list(_ member: String, _ items: [ProjectItem]) -> HTTPResponse {
        BloomreachAnswer.success([(member, JSONValue.array(items.map(\.json)).bytes)])
    }
}

extension AdmittedApp {
    var answers: BloomreachAnswers { derived { BloomreachAnswers($0.project) } }
}
