internal import CountersignCore

/// `countersign top`.
enum TopCommand {
    private static let interval = Flag(
        "interval", .duration(.seconds, 1...3_600), default: "2", help: "how often to refresh")
    private static let count = Flag(
        "count", .integer("N", 1...1_000_000_000),
        help:
            "stop after this many refreshes; by default it goes on until Ctrl-C, or ends after one when output is not a terminal"
    )

    static let command = Command(
        "top", summary: "Show the live status of a running gateway",
        details: """
            Shows whether the gateway is ready and if not, why; the last minute; stored bytes and free space; warnings; and
            the busiest apps with their refusals. --json prints one object per refresh. On a data directory it asks the
            running gateway, with a token of its own that it deletes at the end.
            """,
        flags: [interval, count, .json] + Flag.place,
        examples: ["One look": "countersign top --count 1"]
    ) { invocation in
        let io = invocation.io
        let connection =
            if let remote = try invocation.remoteAdmin() {
                Tail.Connection(admin: remote)
            } else {
                try await Tail.Connection(
                    toGatewayOn: try invocation.storagePlace(),
                    certificateAuthorityFile: try invocation.value(of: .certificateAuthorityFile),
                    tokenName: "top", scope: "read")
            }
        let seconds = try invocation.integer(of: interval) ?? 2
        let looks = try invocation.integer(of: count) ?? (io.isOutputWatched ? Int.max : 1)
        let signals = StopSignals()
        let running = Task {
            for look in 1...looks {
                if look > 1 { try await Task.sleep(for: .seconds(seconds)) }
                try await show(connection.admin, invocation, redraws: io.isOutputWatched && looks > 1)
            }
        }
        let waiting = Task { if await signals.first() != nil { running.cancel() } }
        defer { waiting.cancel() }
        do {
            try await running.value
            await connection.close()
        } catch {
            await connection.close()
            if running.isCancelled { throw ExitCode.interrupted }
            throw error
        }
    }

    private static func show(_ admin: RemoteAdmin, _ invocation: Invocation, redraws: Bool) async throws {
        let overview = try await admin.get("overview").body
        let apps = try await admin.items("apps")
        if invocation.printsJSON {
            return try invocation.io.print(["overview": overview, "apps": .array(apps)])
        }
        let lines = TopScreen(place: admin.place, overview: overview, apps: apps).lines
        // Home, each line up to its end, then whatever is left of the last look.
        try invocation.io.output(
            redraws
                ? "\u{1B}[H" + lines.map { $0 + "\u{1B}[K\n" }.joined() + "\u{1B}[J"
                : lines.joined(separator: "\n") + "\n")
    }
}
