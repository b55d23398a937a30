/// A user's log-out: which events may be sent with which token after `logOut()`.
///
/// The states of a user, and the stored data:
///
/// | State | `user.json` | Token | Events |
/// | --- | --- | --- | --- |
/// | signed in | no entry | stored | sent with the token |
/// | logging out | `loggingOut` | stored | sent with the token; newer events have no user |
/// | logged out | `loggedOut`, while events remain | removed | wait for another token |
/// | signed in again | `signedInAgain`, until the log-out ends | stored | sent with the token |
///
/// - `logOut()` begins a log-out. The user file of `Recorder` stores it at once, until `user.json` has it.
/// - After the remaining events were sent, the token is removed. If the user had a token and events remain, the user
///   is logged out. Otherwise the entry is removed: users of an app without tokens send without one.
/// - A token from the app signs the user in again and is not removed. A token from the provider changes nothing.
/// - If the token cannot be removed, the entry `loggedOut` makes it invalid, and the removal is retried.
/// - If the process ends first, the next client with this queue ends the log-out.
struct LogOut: Codable, Equatable, Sendable {
    /// The raw values are stored in files of all versions.
    enum State: String, Codable {
        case loggingOut = "leaving"
        case loggedOut = "left"
        case signedInAgain = "back"
    }

    enum TokenOrigin: Sendable {
        case provider
        case app
        /// The app, after this client began to log out the user.
        case appDuringLogOut
    }

    let user: String
    let state: State
    /// The `LeaseOwner` of the client in which the user is logging out; otherwise empty.
    var client = ""

    enum CodingKeys: String, CodingKey {
        case user
        case state = "departure"
        case client = "holder"
    }
}

// MARK: - Transitions

extension LogOut {
    /// A user whose events already wait stays logged out.
    static func begin(_ user: String, in client: String, from before: LogOut?) -> LogOut {
        if let before, before.state == .loggedOut { return before }
        return LogOut(user: user, state: .loggingOut, client: client)
    }

    /// Nil if the log-out is over.
    func tokenStored(from origin: TokenOrigin, in client: String) -> LogOut? {
        switch (state, origin) {
        case (.loggedOut, _): nil
        // `user.json` has the log-out before the engine, and possibly before this token.
        case (.loggingOut, .app) where client == self.client: self
        case (.loggingOut, .app), (.loggingOut, .appDuringLogOut): LogOut(user: user, state: .signedInAgain)
        case (.loggingOut, .provider), (.signedInAgain, _): self
        }
    }

    /// Whether remaining events must wait for a token. Nil for `hasEvents` (unreadable storage) counts as true.
    static func leavesEvents(isSigned: Bool, state: State?, hasEvents: Bool?) -> Bool {
        (isSigned || state == .loggedOut) && hasEvents ?? true
    }
}
