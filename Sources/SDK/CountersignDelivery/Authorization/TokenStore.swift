/// Stores the last known token of each user between two runs of the app.
///
/// Each client calls its store on a thread of the SDK, one call at a time. The queue stores no tokens. The default is
/// the Keychain on Apple platforms, and elsewhere a file that only its owner can read.
public protocol TokenStore: Sendable {
    /// Returns the stored token of a user, or nil.
    ///
    /// - Parameter userID: Compared byte for byte.
    /// - Returns: The token as it was stored.
    /// - Throws: When the store cannot be read now, such as a Keychain before the first unlock. The SDK retries later.
    func token(for userID: String) throws -> String?

    /// Stores a token in place of the user's earlier one.
    ///
    /// - Parameters:
    ///   - token: The token.
    ///   - userID: The user's id.
    /// - Throws: When it could not be stored. The SDK then has the token in memory until the app ends.
    func store(_ token: String, for userID: String) throws

    /// Removes the token of a user.
    ///
    /// - Parameter userID: The user's id.
    /// - Throws: When it could not be removed.
    func removeToken(for userID: String) throws

    /// Removes all tokens.
    ///
    /// - Throws: When they could not be removed.
    func removeAll() throws
}
