internal import CountersignCore

enum ClusterCommand {
    static let commands = [status]

    private static let status = Command(
        "cluster status", summary: "List the gateways that share a database, and their warnings",
        details: """
            For each gateway: its name, where it listens, its version, its start, its last heartbeat, how many requests it
            accepted and rejected in the last minute, how far its clock is from the database's, the age of the transaction
            that its event readers wait for, the last change that it has read, and the tasks that only it runs.
            Warnings go to standard error; --json also has the events of each day. A gateway without a heartbeat for 6 s
            rejects all requests, and the other gateways no longer wait for it.
            """,
        flags: [.json] + Flag.target,
        examples: ["Which gateways run?": "countersign cluster status"]
    ) { invocation in
        if try invocation.remoteAdmin() == nil, try invocation.database() == nil {
            if invocation.printsJSON { try invocation.io.print(["gateways": [], "warnings": []]) }
            return invocation.io.say(
                "Only one gateway at a time can run on a data directory; several can share a database (--database)."
            )
        }
        let status = try await invocation.admin().get("cluster").body
        for warning in status["warnings"].elements { invocation.io.say("Warning: \(warning["text"].shown)") }
        if invocation.printsJSON { return try invocation.io.print(status) }
        try invocation.printList(
            status["gateways"].elements,
            [
                "GATEWAY": "name", "URL": "url", "VERSION": "version", "STARTED": "started_ms",
                "SEEN": "seen_ms", "LIVE": "live",
                "ACCEPTED/MIN": Column { $0["last_minute"]["accepted"].shown },
                "REJECTED/MIN": Column { $0["last_minute"]["rejected"].shown },
                "CLOCK MS": Column { $0["clock_offset_ms"].shown },
                "READERS MS": Column { $0["reader_lag_ms"].shown },
                "CHANGE": "generation", "DUTIES": "duties",
            ], empty: "No gateway runs on it. Next: countersign serve, with the same --database")
        invocation.io.say(
            "Change \(status["generation"].shown), schema \(status["schema_version"].shown), PostgreSQL "
                + "\(status["server_version"].shown), readers \(status["reader_lag_ms"].shown) ms behind, "
                + "\(status["partitions"].elements.count) partitions of events.")
    }
}
