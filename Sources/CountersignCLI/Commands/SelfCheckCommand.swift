internal import Countersign

/// `countersign self-check`.
enum SelfCheckCommand {
    static let command = Command(
        "self-check", summary: "Check a deployment from where its clients are",
        details: """
            Asks a gateway by its address: does it answer, is it ready, is its certificate trusted, is its clock right, do
            refusals come through the proxy unchanged, is its issuer this address, and are operator endpoints closed. It needs
            no account and stores nothing. Exit 1 when something is broken, 7 when nothing answers; notes do not affect the
            exit status. `countersign doctor` looks at the data directory instead.
            """,
        flags: [.url, .certificateAuthorityFile, .profile, .json] + Flag.local,
        examples: ["The gateway of this machine; --server names another": "countersign self-check"]
    ) { invocation in
        let (url, profile) = try invocation.destination()
        let authority =
            try invocation.value(of: .certificateAuthorityFile) ?? profile?.certificateAuthorityFile
        let findings = await SelfCheck(url: url, transport: try transport(authority)).findings()
        try DoctorCommand.report(findings, invocation)
    }

    private static func transport(_ authority: String?) throws(CommandError) -> any HTTPTransport {
        #if os(Linux)
            return CurlTransport(certificateAuthorityFile: authority)
        #else
            guard authority == nil else {
                throw CommandError(.usage, "--ca-file is for Linux", hint: "add the CA to the keychain")
            }
            return makeDefaultTransport()
        #endif
    }
}
