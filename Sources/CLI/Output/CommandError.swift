struct CommandError: Error, Sendable, CustomStringConvertible {
    let code: ExitCode
    /// The cause. Contains no key or token.
    let reason: String
    let hint: String?
    /// The stable code of an admin API error; nil for other errors.
    var problem: String?

    init(_ code: ExitCode, _ reason: String, hint: String? = nil) {
        self.code = code
        self.reason = reason
        self.hint = hint
    }

    var description: String { reason }
}
