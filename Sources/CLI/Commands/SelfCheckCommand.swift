enum SelfCheckCommand {
    static let command = Command(
        "self-check", summary: "Check a deployment from outside, as its clients see it",
        details: """
            Checks that the gateway at an address answers and is ready, that its certificate is trusted and its clock right,
            that rejections pass through the proxy unchanged, that its issuer is this address, and that operator endpoints are
            closed. It needs no account and stores nothing. Exit 1 if something is broken, 7 if nothing answers; notes do
            not affect the exit status. `countersign doctor` checks the data directory instead.
            """,
        flags: [.url, .certificateAuthorityFile, .profile, .json] + Flag.local,
        examples: ["The gateway of this machine; --server names another": "countersign self-check"]
    ) { invocation in
        let (url, profile) = try invocation.destination()
        let authority =
            try invocation.value(of: .certificateAuthorityFile) ?? profile?.certificateAuthorityFile
        let check = SelfCheck(url: url, transport: try SystemTransport.trusting(authority))
        try DoctorCommand.report(await check.findings(), invocation)
    }
}
