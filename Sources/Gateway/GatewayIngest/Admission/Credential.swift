package struct Credential: Sendable {
    package enum Scheme: Sendable {
        /// A signed-user token in addition to the app's key. It authenticates the users named in the request,
        /// if the app's enforcement requires that.
        case userToken
        /// Sent without a key. Names the app itself, so it must be valid regardless of enforcement.
        case accessToken
    }

    package let scheme: Scheme
    package let token: String?

    package init(_ scheme: Scheme, _ token: String?) {
        self.scheme = scheme
        self.token = token
    }
}
