internal import CountersignGateway
internal import GatewayModel

extension CommandError {
    /// What the gateway says, with the exit code that fits it.
    init(_ error: GatewayError) {
        let code: ExitCode =
            switch error.code {
            case .notFound: .notFound
            case .conflict, .alreadyRunning: .conflict
            case .cannotBind: .unavailable
            default: .failed
            }
        self.init(code, error.reason)
    }
}
