/// Why a command ended without having done its work.
struct CommandError: Error, Sendable, CustomStringConvertible {
    /// The status of the process.
    let code: ExitCode
    /// What happened. Holds no key and no token.
    let reason: String
    /// What to do next; nil when the reason says it.
    let hint: String?
    /// The stable error code in the admin API's answer; nil for other errors.
    var problem: String?

    init(_ code: ExitCode, _ reason: String, hint: String? = nil) {
        self.code = code
        self.reason = reason
        self.hint = hint
    }

    var description: String { reason }
}
