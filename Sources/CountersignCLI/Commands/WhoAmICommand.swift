internal import CountersignCore

/// `countersign whoami`.
enum WhoAmICommand {
    static let command = Command(
        "whoami", summary: "Print where commands work and in whose name", flags: [.json] + Flag.place,
        examples: [.init("On which gateway, and as whom?", "countersign whoami")]
    ) { invocation in
        let admin = try invocation.admin()
        let user = try await admin.get("session").body["user"]
        try invocation.printTable(["place": .string(admin.place), "user": user]) { table in
            table.add("place", admin.place)
            table.add("name", user["name"].shown)
            table.add("role", user["role"].shown)
        }
        return .done
    }
}
