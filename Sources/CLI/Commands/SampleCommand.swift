internal import CountersignCore

enum SampleCommand {
    static let commands = [list]

    private static let requestID = Flag(
        "request-id", .text("ID"), help: "only the request with this X-Request-Id")
    private static let limit = Flag.limit(default: 20)

    private static let list = Command(
        "sample list", summary: "List samples of failed requests, newest first",
        details: """
            The gateway keeps the newest 200 of each code, up to five a minute. A server shows a viewer, and
            a token with only the scope read, pseudonyms instead of user ids and no request ids.
            """,
        positionals: [.app], flags: [.code, requestID, limit, .json] + Flag.target,
        examples: [
            "What failed last?": "countersign sample list shop",
            "Why did this request fail?":
                "countersign sample list shop --request-id 019aab3c-7d5e-7c1a-b6a2-8c0b3f7d2e11",
        ]
    ) { invocation in
        let samples = try await invocation.admin().items(
            "apps", invocation.app, "samples",
            query: [("code", try invocation.code()), ("request_id", try invocation.value(of: requestID))],
            limit: try invocation.integer(of: limit))
        try invocation.printList(
            samples,
            [
                "TIME": "at_ms", "VERDICT": "verdict", "CODE": "code", "REASON": "reason", "USER": "user",
                "REQUEST ID": "request_id",
            ], empty: "No such failed request of \(invocation.app).", isLong: true)
    }
}
