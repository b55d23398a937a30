/// The exit status of the process. The values are part of the interface, because scripts rely on them.
struct ExitCode: RawRepresentable, Hashable, Error {
    /// The status that a shell sees in `$?`.
    let rawValue: Int32

    init(rawValue: Int32) {
        self.rawValue = rawValue
    }

    static let done = ExitCode(rawValue: 0)
    static let failed = ExitCode(rawValue: 1)
    static let usage = ExitCode(rawValue: 2)
    static let verificationFailed = ExitCode(rawValue: 3)
    static let notAuthorized = ExitCode(rawValue: 4)
    static let notFound = ExitCode(rawValue: 5)
    static let conflict = ExitCode(rawValue: 6)
    static let unavailable = ExitCode(rawValue: 7)
    static let interrupted = ExitCode(rawValue: 130)

    /// Every code with its meaning, as `countersign help exit-codes` prints it.
    static let table: [(code: ExitCode, meaning: String)] = [
        (.done, "Done."),
        (.failed, "Failed: the message gives the reason."),
        (.usage, "Usage: an argument, setting or confirmation is missing or invalid."),
        (.verificationFailed, "Verification failed: a token, a key or a check did not hold."),
        (.notAuthorized, "Not authorized: the credential is missing or was rejected."),
        (.notFound, "Not found: no such app, key or file."),
        (.conflict, "Conflict: it exists already, has changed, or a rule forbids it."),
        (.unavailable, "Unavailable: the server or the address cannot be used now; try again."),
        (.interrupted, "Interrupted by Ctrl-C."),
    ]
}
