internal import GatewayModel
internal import GatewayStorage

extension CommandError {
    /// What the gateway says, with the exit code that fits it and what to do about it on a command line.
    init(_ error: GatewayError) {
        let code: ExitCode =
            switch error.code {
            case .notFound: .notFound
            case .conflict, .alreadyRunning: .conflict
            case .cannotBind: .unavailable
            default: .failed
            }
        let hint: String? =
            switch error.code {
            case .dataDirectory: "Give another folder."
            case .alreadyRunning: "Stop it, or give another folder."
            case .conflict where error.reason == UnfinishedCopy.refusal.reason:
                "`countersign copy` again, as before"
            case .cannotBind: "Stop what listens there, or choose another port."
            default: nil
            }
        self.init(code, error.reason, hint: hint)
    }
}
