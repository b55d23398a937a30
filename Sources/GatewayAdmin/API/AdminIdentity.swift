internal import CountersignJOSE
internal import GatewayModel

/// Who sends a request to the admin API.
struct AdminIdentity: Sendable {
    let name: String
    let role: AdminRole
    /// The session; nil for a token.
    var session: (token: String, expiresMilliseconds: Int64)?
    /// When the user was created, to distinguish a user from an earlier one of the same name. Nil for a token, whose
    /// name is unique.
    var userCreatedMilliseconds: Int64?
    /// True until the second factor is set up that every user needs: nothing else may be done before.
    var mustEnrol = false
    /// True for the account that owns the data directory, from which no file in it is hidden.
    var ownsData = false

    /// What a page must send with every change: known only to who knows the cookie.
    var csrfToken: String? {
        session.map {
            Base64URL.encode(HMACSHA256.authenticate(Array("csrf".utf8), key: Array($0.token.utf8)))
        }
    }
}
