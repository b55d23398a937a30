/// What a request offers as proof of whose it is. Every dialect reads it in one place.
package struct Credential: Sendable {
    package enum Scheme: Sendable {
        /// A signed-user token beside the key of an app: for the users that the request names, as far as the app asks
        /// for one.
        case userToken
        /// An access token and nothing else: it says itself whose the request is, so it must be good whatever the app
        /// asks for.
        case accessToken
    }

    package let scheme: Scheme
    /// As it was sent; nil when there was none.
    package let token: String?

    package init(_ scheme: Scheme, _ token: String?) {
        self.scheme = scheme
        self.token = token
    }
}
