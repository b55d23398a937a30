/// An assertion that must not be taken a second time.
package struct SpentAssertion: Sendable {
    package let clientID: String
    /// `jti`.
    package let id: String
    /// Milliseconds since 1970 from which on it is refused anyway.
    package let expiresMilliseconds: Int64

    package init(clientID: String, id: String, expiresMilliseconds: Int64) {
        self.clientID = clientID
        self.id = id
        self.expiresMilliseconds = expiresMilliseconds
    }
}
