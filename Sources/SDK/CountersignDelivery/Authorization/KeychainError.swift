struct KeychainError: Error, Equatable, CustomStringConvertible {
    let status: Int32

    /// `errSecMissingEntitlement`: a Mac app without an application identifier, or tests without a host app.
    var isPermanent: Bool { status == -34018 }

    /// Safe to log.
    var description: String { "Keychain status \(status)" }
}
