internal import CountersignCore

enum Candidates: Sendable, Equatable {
    case words([String])
    /// The values of `member` in a list of the app in the admin API.
    case ofApp(String, member: String = "id")
    case list(String, member: String = "id")
    case profiles
    case commands
    case files

    static let apps = list("apps")
    static let users = ofApp("events", member: "user_id")
    static let codes = words(AuthErrorCode.all.map(\.reason))
}
