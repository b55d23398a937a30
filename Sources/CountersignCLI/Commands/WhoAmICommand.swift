internal import CountersignCore

/// `countersign whoami`.
enum WhoAmICommand {
    static let command = Command(
        "whoami", summary: "Print which gateway or folder commands work on, and as whom",
        flags: [.json] + Flag.place,
        examples: ["On which gateway, and as whom?": "countersign whoami"]
    ) { invocation in
        let admin = try invocation.admin()
        let user = try await admin.get("session").body["user"]
        try invocation.printTable(
            ["place": .string(admin.place), "user": user],
            [
                "place": "place", "name": Column { $0["user"]["name"].shown },
                "role": Column { $0["user"]["role"].shown },
            ]
        )
    }
}
