internal import Foundation

/// The `countersign` program.
///
/// Not a `main.swift`: closures at its top level belong to the main actor, and one that a C library calls on its own
/// thread then traps at run time.
@main struct CountersignCommand {
    static func main() async {
        let program = CommandLineProgram(commands: CommandTable.all, io: .process())
        let code = await program.run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }
}
