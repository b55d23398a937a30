internal import GatewayModel
internal import GatewayStorage

extension CommandError {
    /// Converts a gateway error, with the matching exit code and a hint for the command line.
    init(_ error: GatewayError) {
        let code: ExitCode =
            switch error.code {
            case .notFound: .notFound
            case .conflict, .alreadyRunning: .conflict
            case .cannotBind: .unavailable
            default: .failed
            }
        let isUnfinished = error.reason == UnfinishedCopy.rejection.reason
        self.init(
            code, error.reason, hint: isUnfinished ? "run `countersign copy` again" : error.hint)
    }
}
