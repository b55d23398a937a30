/// A Keychain function has failed.
struct KeychainError: Error, Equatable, CustomStringConvertible {
    /// Its `OSStatus`.
    let status: Int32

    /// True if the app has no right to use the Keychain, which does not change while it runs: `errSecMissingEntitlement`, such
    /// as for a Mac app without an application identifier, and for tests without a host app.
    var isPermanent: Bool { status == -34018 }

    /// The number alone, which is safe to log.
    var description: String { "Keychain status \(status)" }
}
