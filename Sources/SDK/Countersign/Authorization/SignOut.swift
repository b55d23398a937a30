/// A user's sign-out: which events may be sent with which token after `logOut()`.
///
/// The states of a user, and the stored data:
///
/// | State | `user.json` | Token | Events |
/// | --- | --- | --- | --- |
/// | signed in | no entry | stored | sent with the token |
/// | signing out | `signingOut` | stored | sent with the token; newer events have no user |
/// | signed out | `signedOut`, while events remain | removed | wait for another token |
/// | signed in again | `signedInAgain`, until the sign-out ends | stored | sent with the token |
///
/// Transitions:
///
/// - `logOut()` begins a sign-out. The user file of `Recorder` stores it at once, until `user.json` has it.
/// - After the remaining events were sent, the sign-out ends: the token is removed. If the user had a token and
///   events remain, the user is signed out. Otherwise the entry is removed: users of an app without tokens send
///   without one.
/// - A token from the app signs the user in again. If it comes during the sign-out, it is not removed at its end.
///   A token from the provider changes nothing.
/// - If the token cannot be removed, its removal is pending: the entry `signedOut` makes a token in the store
///   invalid, and the removal is retried.
/// - If the process ends first, the next client with this queue ends the sign-out.
struct SignOut: Codable, Equatable, Sendable {
    /// The raw values are stored in files of all versions.
    enum State: String, Codable {
        case signingOut = "leaving"
        case signedOut = "left"
        case signedInAgain = "back"
    }

    /// The source of a token that was stored.
    enum TokenOrigin: Sendable {
        case provider
        case app
        /// The app, after this client began to sign out the user.
        case appDuringSignOut
    }

    let user: String
    let state: State
    /// The `LeaseHolder` of the client in which the user is signing out; otherwise empty.
    var client = ""

    enum CodingKeys: String, CodingKey {
        case user
        case state = "departure"
        case client = "holder"
    }
}

// MARK: - Transitions

extension SignOut {
    /// Begins a sign-out. A user whose events already wait stays signed out.
    static func begin(_ user: String, in client: String, from before: SignOut?) -> SignOut {
        if let before, before.state == .signedOut { return before }
        return SignOut(user: user, state: .signingOut, client: client)
    }

    /// The user's sign-out after a token was stored; nil if the sign-out is over.
    func tokenStored(from origin: TokenOrigin, in client: String) -> SignOut? {
        switch (state, origin) {
        case (.signedOut, _): nil
        // `user.json` has the sign-out before the engine, and possibly before this token.
        case (.signingOut, .app) where client == self.client: self
        case (.signingOut, .app), (.signingOut, .appDuringSignOut): SignOut(user: user, state: .signedInAgain)
        case (.signingOut, .provider), (.signedInAgain, _): self
        }
    }

    /// Whether the user's remaining events must wait for a token after the sign-out. If the storage cannot be
    /// read, they must.
    static func leavesEvents(isSigned: Bool, state: State?, hasEvents: Bool?) -> Bool {
        (isSigned || state == .signedOut) && hasEvents ?? true
    }
}
