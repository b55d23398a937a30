internal import CountersignCrypto
internal import GatewayModel

struct AdminIdentity: Sendable {
    let name: String
    let role: AdminRole
    var session: (token: String, expiresMilliseconds: Int64)?
    /// The user's time of creation; nil for an API token, because its name is unique.
    var userCreatedMilliseconds: Int64?
    /// Whether the user must set up a second factor before any other request.
    var mustEnrol = false
    /// Whether the caller is a local command with direct access to the storage, and so can read all data in it.
    var ownsData = false

    /// A text that differs between a user and a deleted user of the same name. Ends with a newline.
    var uniqueName: String { "\(name)\n\(userCreatedMilliseconds ?? 0)\n" }

    /// The CSRF token for changes by a page. It derives from the session cookie.
    var csrfToken: String? {
        session.map {
            Base64URL.encode(HMACSHA256.authenticate(Array("csrf".utf8), key: Array($0.token.utf8)))
        }
    }
}
