internal import CountersignCore
internal import Foundation

enum ManCommand {
    private static let folder = Flag("out", .path("FOLDER"), default: ".", help: "where to write the pages")

    /// `table` is a closure, because the table contains this command.
    static func command(table: @escaping @Sendable () -> [Command]) -> Command {
        Command(
            "man", summary: "Write the manual pages: one for the program and one for each command",
            flags: [folder],
            examples: ["Read one": "countersign man --out man1"]
        ) { invocation in
            let directory = URL(fileURLWithPath: try invocation.value(of: folder) ?? ".")
            let commands = table()
            do {
                try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
                try Data(ManPage.program(commands, version: countersignVersion).utf8)
                    .write(to: directory.appendingPathComponent("countersign.1"))
                for command in commands {
                    let name = "countersign-\(command.path.joined(separator: "-")).1"
                    try Data(ManPage.command(command, version: countersignVersion).utf8)
                        .write(to: directory.appendingPathComponent(name))
                }
            } catch {
                throw CommandError(.failed, "cannot write to \(directory.path)")
            }
            invocation.io.say("Wrote \(commands.count + 1) pages.")
            try invocation.io.print(directory.appendingPathComponent("countersign.1").path)
        }
    }
}
