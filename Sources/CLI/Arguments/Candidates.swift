internal import CountersignCore

enum Candidates: Sendable, Equatable {
    case words([String])
    /// `member` of each item of a list of the admin API, such as `/apps/{app}/sessions`.
    case ofApp(String, member: String = "id")
    case list(String, member: String = "id")
    case profiles
    case commands
    case files

    static let apps = list("apps")
    static let users = ofApp("events", member: "user_id")
    static let codes = words(AuthErrorCode.all.map(\.reason))
}
