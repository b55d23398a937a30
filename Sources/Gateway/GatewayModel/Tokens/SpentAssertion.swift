/// A client assertion that was used, and must not be accepted again.
package struct SpentAssertion: Sendable {
    package let clientID: String
    package let id: String
    /// The time from which the assertion is rejected as expired, in milliseconds since 1970.
    package let expiresMilliseconds: Int64

    package init(clientID: String, id: String, expiresMilliseconds: Int64) {
        self.clientID = clientID
        self.id = id
        self.expiresMilliseconds = expiresMilliseconds
    }
}
