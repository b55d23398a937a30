internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign backup …`.
enum BackupCommand {
    static let commands = [create, list, verify, restore]

    private static let path = Positional("PATH", help: "a backup's folder")
    private static let folder = Flag(
        "to", .path("FOLDER"), help: "where the backup's folder goes; default: backups in the data directory")
    private static let target = Flag("to", .path("FOLDER"), help: "the new data directory")

    private static let create = Command(
        "backup create", summary: "Copy the data directory and print the copy's folder",
        details: """
            A gateway may run meanwhile. The copy is SQLite's own (online backup), checked with its integrity_check, counted
            and listed with SHA-256 in manifest.json. It holds keys and events: keep it as safe as the original.
            """,
        flags: [folder, .json, .data],
        examples: [.init("Beside the data", "countersign backup create")]
    ) { invocation in
        let data = try invocation.dataDirectory()
        let backup = try Backup.create(of: data, in: try invocation.value(of: folder) ?? data + "/backups")
        invocation.io.say("Copied \(backup.events) events, \(backup.bytes) bytes, verified.")
        if invocation.isSet(.json) {
            try invocation.io.print(backup.json)
        } else {
            try invocation.io.print(backup.path)
        }
        return .done
    }

    private static let list = Command(
        "backup list", summary: "List the backups of a folder, the newest first",
        flags: [folder, .json, .data],
        examples: [.init("Beside the data", "countersign backup list")]
    ) { invocation in
        let place = try invocation.value(of: folder) ?? invocation.dataDirectory() + "/backups"
        let backups = Backup.all(in: place)
        if invocation.isSet(.json) {
            try invocation.io.print(.array(backups.map(\.json)))
            return .done
        }
        if backups.isEmpty {
            invocation.io.say("No backup in \(place). Next: countersign backup create")
            return .done
        }
        var table = TextTable(rightAligned: [1, 2])
        table.add("BACKUP", "EVENTS", "BYTES", "MADE")
        for backup in backups {
            table.add(
                backup.name, String(backup.events), String(backup.bytes),
                RFC3339.text(milliseconds: backup.createdMilliseconds))
        }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let verify = Command(
        "backup verify", summary: "Check that a backup is whole",
        details: "The files' digests, SQLite's integrity_check and the counts. Exit 3 when it is damaged.",
        positionals: [path], flags: [.json],
        examples: [.init("The one just made", "countersign backup verify $(countersign backup create)")]
    ) { invocation in
        let backup = try whole { () throws(GatewayError) in
            try Backup.verify(invocation.requiredWord(of: path))
        }
        invocation.io.say("Whole: \(backup.events) events, \(backup.bytes) bytes.")
        if invocation.isSet(.json) { try invocation.io.print(backup.json) }
        return .done
    }

    private static let restore = Command(
        "backup restore", summary: "Make a new data directory of a backup",
        details:
            "Verifies first. The folder must not exist or be empty; then `countersign serve --data FOLDER`.",
        positionals: [path], flags: [target],
        examples: [
            .init(
                "The one just made",
                "countersign backup restore $(countersign backup create) --to ./restored-data")
        ]
    ) { invocation in
        guard let target = try invocation.value(of: target) else {
            throw CommandError(.usage, "--to is missing: give the new data directory")
        }
        let backup = try whole { () throws(GatewayError) in
            try Backup.restore(invocation.requiredWord(of: path), to: target)
        }
        invocation.io.say("Restored \(backup.events) events. Next:")
        try invocation.io.print("countersign serve --data \(target)")
        return .done
    }

    /// What `body` says of a backup; a damaged one is a failed verification.
    private static func whole(_ body: () throws(GatewayError) -> Backup) throws -> Backup {
        do throws(GatewayError) {
            return try body()
        } catch {
            guard error.code == .invalid else { throw error }
            throw CommandError(.verificationFailed, error.reason)
        }
    }
}

extension Backup {
    /// The backup as commands print it with `--json`.
    fileprivate var json: JSONValue {
        [
            "path": .string(path), "name": .string(name), "created_ms": .integer(createdMilliseconds),
            "program": .string(program), "bytes": .integer(Int64(bytes)), "events": .integer(Int64(events)),
            "files": .array(
                files.map { file in
                    [
                        "name": .string(file.name), "bytes": .integer(Int64(file.bytes)),
                        "sha256": .string(file.sha256),
                        "rows": .object(file.rows.mapValues { .integer(Int64($0)) }),
                    ]
                }),
        ]
    }
}
