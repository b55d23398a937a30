internal import CountersignCore
internal import CountersignGateway
internal import GatewayModel

enum MigrateCommand {
    private static let check = Flag(
        "check", help: "change nothing; exit 3 when the schema is older than this program's")

    static let command = Command(
        "migrate", summary: "Bring the database's schema to this version's",
        details: """
            `countersign serve` does the same at start; even if several start at once, each step is done once. A schema
            written by a newer version is rejected. Gateways of the previous version may keep running. A data directory needs
            no migration: it is brought up to date when it is opened.
            """,
        flags: [check, .json] + Flag.local,
        examples: ["Before the gateways of a new version start": "countersign migrate"]
    ) { invocation in
        guard let address = try invocation.database() else {
            return invocation.io.say(
                "A data directory is brought up to date when it is opened; --database URL names a database.")
        }
        let found = try Invocation.schemaVersion(of: address)
        if !invocation.isSet(check), found < DatabaseSchema.newest { try DatabaseSchema.migrate(address) }
        let now = try DatabaseSchema.version(of: address)
        let answer: JSONValue = [
            "before": .integer(Int64(found)), "version": .integer(Int64(now)),
            "newest": .integer(Int64(DatabaseSchema.newest)),
        ]
        try invocation.print(answer) {
            try invocation.io.print(now == found ? "schema \(now)" : "schema \(found) -> \(now)")
        }
        guard now == DatabaseSchema.newest else {
            invocation.io.say("This program needs schema \(DatabaseSchema.newest): `countersign migrate`.")
            throw ExitCode.verificationFailed
        }
    }
}
