internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// `countersign copy`.
enum CopyCommand {
    private static let from = Flag(
        "from", .text("PLACE"), help: "what is copied: a data directory or a database")
    private static let to = Flag(
        "to", .text("PLACE"), help: "where it is copied to: a new data directory, or an empty database")
    /// Rows after which a table's number is shown again.
    private static let shown = 100_000

    static let command = Command(
        "copy", summary: "Move everything from a data directory to a database, or back",
        details: """
            Stop every gateway before, and start none on the source afterwards: both would go on with the same positions.
            Everything is copied: apps and operators, sessions, events with their positions and ids, consumers, webhooks and
            sinks with how far they are, customers, counts. Nothing of the source is deleted. Ended in the middle, the same command goes on
            where it was, and until it is done nothing else works with the target. At the end rows and hashes of all
            tables are compared; exit 3 when any differs. One of both is a database.
            """,
        flags: [from, to, .databasePasswordFile, .tokenKeyFile, .json],
        examples: [
            "Before there are several gateways":
                "countersign copy --from ./countersign-data --to postgresql://countersign@db/countersign"
        ]
    ) { invocation in
        let copy = try StorageCopy(
            from: try place(from, invocation), to: try place(to, invocation))
        try copy.copy { table, rows in
            if rows % shown == 0 { invocation.io.say("\(table): \(rows) rows copied") }
        }
        invocation.io.say("Copied. Both are compared now.")
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
                hint: "the source was changed since the copy was begun; empty the target and copy again")
        }
        invocation.io.say("Done. Start gateways on the target only.")
    }

    private static func place(_ flag: Flag, _ invocation: Invocation) throws -> StoragePlace {
        guard let text = try invocation.value(of: flag) else {
            throw CommandError(.usage, "--\(flag.name) is missing: give a folder or a database")
        }
        let file = try invocation.value(of: .databasePasswordFile)
        guard var address = DatabaseAddress(text, passwordFile: file) else {
            return .folder(URL(fileURLWithPath: text).standardizedFileURL.path)
        }
        address.tokenKeyFile =
            try invocation.value(of: .tokenKeyFile)
            ?? DatabaseAddress.tokenKeyFile(in: invocation.dataDirectory())
        return .database(address)
    }
}

extension CopySum {
    fileprivate var json: JSONValue { ["rows": .integer(Int64(rows)), "sha256_sum": .string(hash)] }
}
