internal import CountersignCore

/// The values that a shell completes an argument with.
enum Candidates: Sendable, Equatable {
    case words([String])
    /// A member of the items of a list of the app in the admin API.
    case ofApp(String, member: String = "id")
    /// A member of the items of a list in the admin API.
    case list(String, member: String = "id")
    case profiles
    /// The names of commands.
    case commands
    case files

    static let apps = list("apps")
    /// The users of the app's newest events.
    static let users = ofApp("events", member: "user_id")
    static let codes = words(AuthErrorCode.all.map(\.reason))
}
