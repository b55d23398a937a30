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
/// - `logOut()` begins a log-out. `StoredUser.Identity` has the log-out until it is in `user.json`.
/// - After the flush the client removes the token. If the user had a token or the app has a token provider, and events
///   remain, the state becomes `loggedOut`. Otherwise the client removes the entry, and sends them without a token.
/// - During a log-out, a token that the app sets signs the user in again. A provider's token changes nothing.
/// - If the token cannot be removed, the entry `loggedOut` makes it invalid, and the client retries the removal.
/// - If the process ends first, the next client with this queue ends the log-out.
struct LogOut: Codable, Equatable, Sendable {
    /// The raw values must not change: earlier versions of the SDK read and write them.
    enum State: String, Codable {
        case loggingOut = "leaving"
        case loggedOut = "left"
        case signedInAgain = "back"
    }

    enum TokenOrigin: Sendable {
        case provider
        case app
        /// The app. A log-out in `user.json` is older than the token.
        case appDuringLogOut
    }

    let user: String
    let state: State
    /// The ID of the `LeaseOwner` of the client in which the user is logging out; otherwise empty.
    var client = ""

    enum CodingKeys: String, CodingKey {
        case user
        case state = "departure"
        case client = "holder"
    }
}

// MARK: - Transitions

extension LogOut {
    /// Returns the log-out after a call of `logOut()`. The state `loggedOut` does not change.
    static func begin(_ user: String, in client: String, from before: LogOut?) -> LogOut {
        if let before, before.state == .loggedOut { return before }
        return LogOut(user: user, state: .loggingOut, client: client)
    }

    /// Returns the log-out after a token was stored; nil if the token ends it.
    func tokenStored(from origin: TokenOrigin, in client: String) -> LogOut? {
        switch (state, origin) {
        case (.loggedOut, _): nil
        // The app set the token before it called `logOut()`, but `user.json` received the log-out first.
        case (.loggingOut, .app) where client == self.client: self
        case (.loggingOut, .app), (.loggingOut, .appDuringLogOut): LogOut(user: user, state: .signedInAgain)
        case (.loggingOut, .provider), (.signedInAgain, _): self
        }
    }

    /// Whether events remain that must wait for a token. If `hasEvents` is nil (unreadable storage), it counts as true.
    static func leavesEvents(isSigned: Bool, state: State?, hasEvents: Bool?) -> Bool {
        (isSigned || state == .loggedOut) && hasEvents ?? true
    }
}
