package import CountersignTransport

package struct Credential: Hashable, Sendable {
    package enum Scheme: Hashable, Sendable {
        /// `Authorization: <scheme> <token>` (RFC 9110, section 11.4).
        case scheme(String)
        /// `Authorization: <token>`, for shared access signatures.
        case bare
        case field(String)
        /// No header field, because the app has turned tokens off.
        case withheld

        /// Bearer tokens (RFC 6750, section 2.1).
        package static let bearer = scheme("Bearer")
    }

    package let scheme: Scheme
    /// Nil without a token. The server then decides about the request.
    package let token: SignedToken?
    /// Increases with each new token, to recognize late responses about an older token. 0 without a token.
    package let generation: Int

    package init(_ scheme: Scheme, token: SignedToken?, generation: Int = 0) {
        self.scheme = scheme
        self.token = token
        self.generation = generation
    }

    /// Replaces a header field of the same name.
    package func applied(to request: TransportRequest) -> TransportRequest {
        guard let token else { return request }
        switch scheme {
        case .scheme(let name): return request.setting("Authorization", to: "\(name) \(token.rawValue)")
        case .bare: return request.setting("Authorization", to: token.rawValue)
        case .field(let name): return request.setting(name, to: token.rawValue)
        case .withheld: return request
        }
    }
}
