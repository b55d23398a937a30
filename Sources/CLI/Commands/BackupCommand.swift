internal import CountersignCore
internal import GatewayModel
internal import GatewayStorage

enum BackupCommand {
    static let commands = [create, list, verify, restore]

    private static let backup = Positional(
        "BACKUP", completes: .files,
        help: "its name, as `countersign backup list` prints it, or the path of its folder")
    private static let folder = Flag(
        "to", .path("FOLDER"),
        help: "a folder on this machine, instead of the gateway's backup folder")
    private static let target = Flag("to", .path("FOLDER"), help: "the new data directory")

    private static let create = Command(
        "backup create", summary: "Copy the data directory and print the copy's name",
        details: """
            A gateway may be running. The copy is made by SQLite's online backup, checked with its integrity_check, counted
            and listed with SHA-256 in manifest.json. It contains keys and events: keep it as safe as the original. It goes
            into the folder backups of the data directory, or with --server into that gateway's --backup-folder; with --to,
            the path of the copy is printed.
            """,
        flags: [folder, .json] + Flag.target,
        examples: ["In the data directory": "countersign backup create"]
    ) { invocation in
        if let folder = try invocation.localFolder(folder) {
            guard try invocation.database() == nil else {
                throw CommandError(
                    .usage, "--to is for a data directory",
                    hint: "back the database up with PostgreSQL's own tools, such as pg_basebackup")
            }
            let line = ProgressLine(io: invocation.io)
            defer { line.clear() }
            let made = try Backup.create(of: invocation.dataDirectory, in: folder, report: line.show)
            line.clear()
            invocation.io.say("Copied and verified. Events: \(made.events), bytes: \(made.bytes).")
            return try invocation.print(made.json) { try invocation.io.print(made.path) }
        }
        let made = try await invocation.admin().post("backups")
        invocation.io.say(
            "Copied and verified. Events: \(made["events"].shown), bytes: \(made["bytes"].shown).")
        try invocation.print(made) { try invocation.io.print(made["name"].shown) }
    }

    private static let list = Command(
        "backup list", summary: "List the backups, newest first",
        flags: [folder, .json] + Flag.target,
        examples: ["In the data directory": "countersign backup list"]
    ) { invocation in
        let backups: [JSONValue]
        if let folder = try invocation.localFolder(folder) {
            backups = Backup.all(in: folder).map(\.json)
        } else {
            backups = try await invocation.admin().items("backups")
        }
        try invocation.printList(
            backups, ["BACKUP": "name", "EVENTS": "events", "BYTES": "bytes", "CREATED": "created_ms"],
            empty: "No backup. Next: countersign backup create")
    }

    private static let verify = Command(
        "backup verify", summary: "Check that a backup is intact",
        details: """
            Checks the files' digests, SQLite's integrity_check and the counts. Exit 3 if it is damaged. A path is checked
            on this machine, a name among the gateway's backups.
            """,
        positionals: [backup], flags: [.json] + Flag.target,
        examples: ["A new backup": "countersign backup verify $(countersign backup create)"]
    ) { invocation in
        let word = invocation[backup]
        let found: JSONValue
        if word.contains("/") {
            let line = ProgressLine(io: invocation.io)
            defer { line.clear() }
            found = try whole { () throws(GatewayError) in try Backup.verify(word, report: line.show) }.json
        } else {
            found = try await invocation.admin().post("backups", word, "verify")
            guard found["ok"].isTrue else {
                throw CommandError(.verificationFailed, found["problem"].shown)
            }
        }
        invocation.io.say("Intact: \(found["events"].counted("event")), \(found["bytes"].counted("byte")).")
        if invocation.printsJSON { try invocation.io.print(found) }
    }

    private static let restore = Command(
        "backup restore", summary: "Create a new data directory from a backup",
        details:
            "Verifies the backup first. The folder must be new or empty. Then run `countersign serve --data FOLDER`.",
        positionals: [backup], flags: [target, .data],
        examples: [
            "A new backup":
                "countersign backup restore $(countersign backup create) --to ./restored-data"
        ]
    ) { invocation in
        guard let target = try invocation.value(of: target) else {
            throw CommandError(.usage, "--to is missing: give the new data directory")
        }
        let word = invocation[backup]
        let path = word.contains("/") ? word : invocation.dataDirectory + "/backups/" + word
        let line = ProgressLine(io: invocation.io)
        defer { line.clear() }
        let restored = try whole { () throws(GatewayError) in
            try Backup.restore(path, to: target, report: line.show)
        }
        line.clear()
        invocation.io.say("Restored \(restored.events.counted("event")). Next:")
        try invocation.io.print("countersign serve --data \(target.quotedForShell)")
    }

    /// Returns the result of `body`. Throws `verificationFailed` if the backup is damaged.
    private static func whole(_ body: () throws(GatewayError) -> Backup) throws -> Backup {
        do throws(GatewayError) {
            return try body()
        } catch {
            guard error.code == .invalid else { throw error }
            throw CommandError(.verificationFailed, error.reason)
        }
    }
}

extension Invocation {
    /// A local folder; nil if the flag is not given. Throws `usage` if the command works on a server.
    fileprivate func localFolder(_ flag: Flag) throws -> String? {
        guard let folder = try value(of: flag) else { return nil }
        guard try remoteAdmin() == nil else {
            throw CommandError(.usage, "--\(flag.name) names a folder on this machine, not on a server")
        }
        return folder
    }
}

extension Backup {
    fileprivate var json: JSONValue {
        var members = manifest
        members["path"] = .string(path)
        members["name"] = .string(name)
        members["bytes"] = .integer(Int64(bytes))
        members["events"] = .integer(Int64(events))
        return .object(members)
    }
}

extension ProgressLine {
    fileprivate func show(_ step: Backup.Step) {
        switch step {
        case .copying(let name, let bytes): show("Copying \(name), \(bytes / 1_000_000) MB", always: true)
        case .checking(let name, let bytes): show("Checking \(name): \(bytes / 1_000_000) MB read")
        }
    }
}
