import Foundation
import Testing

@testable import CountersignCLI

struct CommandTableTests {
    @Test func everyCommandHasAUniqueNameASummaryAndExamples() {
        #expect(Set(CommandTable.all.map(\.name)).count == CommandTable.all.count)
        for command in CommandTable.all {
            #expect(!command.path.isEmpty)
            #expect(!command.examples.isEmpty, "\(command.name) has no example")
            #expect(!command.summary.isEmpty && !command.summary.hasSuffix("."), "\(command.name)")
            #expect(Set(command.flags.map(\.name)).count == command.flags.count, "\(command.name)")
            for example in command.examples {
                #expect(example.commandLine.hasPrefix("countersign \(command.name)"), "\(command.name)")
            }
        }
    }

    @Test func noCommandIsThePrefixOfAnother() {
        for command in CommandTable.all {
            let hidden = CommandTable.all.filter {
                $0.path.count > command.path.count && $0.path.starts(with: command.path)
            }
            #expect(hidden.isEmpty, "\(command.name) hides \(hidden.map(\.name))")
        }
    }

    @Test func helpOnEachCommandNamesItsFlagsAndExamples() async {
        for command in CommandTable.all {
            let recorded = RecordedIO()
            #expect(await recorded.run(arguments: command.path + ["--help"]) == .done)
            let isGlobal = command.flags.contains(.server) || command.flags.contains(.profile)
            for flag in command.flags where !isGlobal || !Flag.target.contains(flag) {
                #expect(recorded.output.contains(flag.usage))
            }
            #expect(recorded.output.contains("Global flags: ") == isGlobal)
            for example in command.examples { #expect(recorded.output.contains(example.commandLine)) }
            let parts = recorded.output.components(separatedBy: "\nExamples:\n")
            #expect(!parts[0].contains("Flags:") && !parts[0].contains("Arguments:"))
        }
    }

    @Test func helpOnArgumentsNamesOnlyFlagsOfTheCommand() {
        for command in CommandTable.all {
            for named in command.positionals.flatMap({ $0.help.matches(of: #/with --([a-z-]+)/#) }) {
                #expect(command.flags.contains { $0.name == named.output.1 }, "\(command.name)")
            }
        }
    }

    @Test func helpListsEveryCommand() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("help", "--all") == .done)
        for command in CommandTable.all { #expect(recorded.output.contains("\n  \(command.path[0]) ")) }
        for group in Set(CommandTable.all.filter { $0.path.count > 1 }.map { $0.path[0] }) {
            let listed = RecordedIO()
            #expect(await listed.run(group, "--help") == .done)
            for command in CommandTable.all where command.path[0] == group {
                #expect(
                    listed.output.split(separator: "\n").contains {
                        ($0 + " ").hasPrefix("  \(command.name) ")
                    })
            }
        }
    }

    @Test(arguments: [[], ["--help"], ["help"]])
    func helpBeginsWithTwelveCommands(arguments: [String]) async {
        let recorded = RecordedIO()
        #expect(await recorded.run(arguments: arguments) == .done)
        let listed = Set(recorded.output.matches(of: #/(?m)^  ([a-z-]+) /#).map { String($0.output.1) })
        #expect(listed.count == 12 && listed == CommandSection.firstWeek)
        #expect(recorded.output.contains("`countersign help --all` lists all commands."))
        #expect(recorded.talk.isEmpty)
    }

    @Test func helpListsTheGlobalFlags() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("help", "global-flags") == .done)
        for flag in Flag.target { #expect(recorded.output.contains("\n  \(flag.usage)")) }
    }

    /// Examples are not wrapped, because users copy them.
    @Test(arguments: [nil, 50, 300])
    func helpFitsTheTerminal(width: Int?) async {
        for command in CommandTable.all {
            let recorded = RecordedIO(isOutputWatched: true, width: width)
            #expect(await recorded.run(arguments: command.path + ["--help"]) == .done)
            let limit = min(width ?? 80, 100)
            for line in recorded.output.split(separator: "\n") where line.count > limit {
                let isExample = command.examples.contains {
                    line.hasSuffix($0.commandLine) || line.hasSuffix($0.purpose)
                }
                let text = line.drop { $0 == " " }
                let isWhole = !text.contains(" ") || text.contains("  ") || text.contains("|")
                #expect(isExample || isWhole || line.hasPrefix("Usage:"), "\(line)")
            }
        }
    }

    @Test func theWordHelpAfterAGroupListsItsCommands() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("app", "help") == .done)
        #expect(recorded.output.contains("app create"))
    }

    @Test func eachCommandIsInOneSectionOfTheHelp() {
        let words = CommandSection.all.flatMap { $0.words.map(\.key) }
        #expect(words.count == Set(words).count)
        #expect(Set(words) == Set(CommandTable.all.map { $0.path[0] }))
        for (word, about) in CommandSection.all.flatMap(\.words) {
            #expect((about == nil) == CommandTable.all.contains { $0.path == [word] }, "\(word)")
        }
    }

    @Test func helpExplainsEveryExitCode() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("help", "exit-codes") == .done)
        for code in [0, 1, 2, 3, 4, 5, 6, 7, 130] { #expect(recorded.output.contains("\n  \(code) ")) }
    }

    @Test func helpForAnUnknownCommandFails() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("help", "serv") == .usage)
        #expect(recorded.talk.contains("did you mean `countersign serve`?"))
    }

    @Test func aGroupWithoutACommandListsItsCommandsOnce() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("admin") == .usage)
        #expect(recorded.talk.contains("`admin` needs a subcommand: reset, second-factor, token, user\n"))
    }
}
