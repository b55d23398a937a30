internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

enum CopyCommand {
    private static let from = Flag("from", .text("PLACE"), help: "data directory or database to copy")
    private static let to = Flag(
        "to", .text("PLACE"), help: "new data directory, or empty database, to copy it to")
    static let command = Command(
        "copy", summary: "Move everything from a data directory to a database, or back",
        details: """
            Stop every gateway first, and never start one on the source again: both would give out the same positions.
            One of the two is a data directory, the other a database. Everything is copied: apps and operators, sessions,
            events with their positions and ids, consumers, webhooks and streams with their progress, customers and
            counts. Nothing is deleted from the source. If the command is interrupted, run it again and it resumes; until it
            has finished, no other command accepts the target. At the end the rows and hashes of every table are compared;
            the exit status is 3 if any differ.
            """,
        flags: [from, to, .databasePasswordFile, .tokenKeyFile, .json],
        examples: [
            "Move from one gateway to several":
                "countersign copy --from ./countersign-data --to postgresql://countersign@db/countersign"
        ]
    ) { invocation in
        let source = try location(from, invocation)
        // Throws for a database without data or with the schema of another version.
        if case .database(let address) = source { try invocation.checkSchema(of: address) }
        let copy = try StorageCopy(from: source, to: try location(to, invocation))
        let line = ProgressLine(io: invocation.io)
        defer { line.clear() }
        try copy.copy { table, rows in line.show("\(table): \(rows) rows copied") }
        line.say("Copied. Comparing source and target.")
        let compared = try copy.compare()
        let isSame = compared.allSatisfy(\.isSame)
        let answer: JSONValue = [
            "same": .bool(isSame),
            "tables": .array(
                compared.map { one in
                    [
                        "table": .string(one.table), "same": .bool(one.isSame), "from": one.from.json,
                        "to": one.to.json,
                    ]
                }),
        ]
        try invocation.print(answer) {
            var table = TextTable(rightAligned: [1, 2])
            table.add("TABLE", "FROM", "TO", "HASH", "RESULT")
            for one in compared {
                table.add(
                    one.table, String(one.from.rows), String(one.to.rows), String(one.from.hash.prefix(16)),
                    one.isSame ? "same" : "differs")
            }
            try invocation.io.print(table)
        }
        guard isSame else {
            let names = compared.filter { !$0.isSame }.map(\.table).joined(separator: ", ")
            throw CommandError(
                .verificationFailed, "the copy differs from its source in \(names)",
                hint: "the source has changed since the copy was started; empty the target and copy again")
        }
        invocation.io.say("Done. Start gateways on the target only.")
    }

    private static func location(_ flag: Flag, _ invocation: Invocation) throws -> StorageLocation {
        guard let text = try invocation.value(of: flag) else {
            throw CommandError(.usage, "--\(flag.name) is missing: give a folder or a database")
        }
        let file = try invocation.value(of: .databasePasswordFile)
        guard var address = DatabaseAddress(text, passwordFile: file) else {
            guard !text.contains("://") else {
                throw CommandError(
                    .usage, "--\(flag.name) is neither a folder nor a PostgreSQL database",
                    hint: "write postgresql://user@host/database")
            }
            return .folder(URL(fileURLWithPath: text).standardizedFileURL.path)
        }
        address.tokenKeyFile =
            try invocation.value(of: .tokenKeyFile)
            ?? DatabaseAddress.tokenKeyFile(in: invocation.dataDirectory)
        return .database(address)
    }
}

extension CopyChecksum {
    fileprivate var json: JSONValue { ["rows": .integer(Int64(rows)), "sha256_sum": .string(hash)] }
}
