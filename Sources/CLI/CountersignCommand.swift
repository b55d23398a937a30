internal import Foundation

/// Not in `main.swift`, because closures at its top level belong to the main actor and trap at run time if a
/// C library calls them on another thread.
@main struct CountersignCommand {
    static func main() async {
        let program = CommandLineProgram(commands: CommandTable.all, io: .process())
        let code = await program.run(Array(CommandLine.arguments.dropFirst()))
        exit(code.rawValue)
    }
}
