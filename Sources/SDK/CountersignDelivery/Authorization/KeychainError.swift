/// A failure of a Keychain function.
struct KeychainError: Error, Equatable, CustomStringConvertible {
    /// The `OSStatus` of the function.
    let status: Int32

    /// Whether the app lacks the entitlement for the Keychain (`errSecMissingEntitlement`), such as a Mac app
    /// without an application identifier, or tests without a host app.
    var isPermanent: Bool { status == -34018 }

    /// The number alone, which is safe to log.
    var description: String { "Keychain status \(status)" }
}
