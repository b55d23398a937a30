package struct Credential: Sendable {
    package enum Scheme: Sendable {
        /// A token of a user or backend client, in addition to the app's write key. It authenticates the users named in
        /// the request, unless the app's enforcement is disabled.
        case userToken
        /// A token sent without a write key. It is the only credential, so it must be valid regardless of enforcement.
        case accessToken
    }

    package let scheme: Scheme
    package let token: String?

    package init(_ scheme: Scheme, _ token: String?) {
        self.scheme = scheme
        self.token = token
    }
}
