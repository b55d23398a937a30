import Testing

@testable import CountersignCLI

struct CommandLineProgramTests {
    private static func failing(with error: any Error) -> Command {
        Command("fail", summary: "Fail", examples: [:]) { _ in throw error }
    }

    @Test func dataGoesToStandardOutputAndErrorsToStandardError() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("version") == .done)
        #expect(recorded.output == "countersign \(VersionCommand.version)\n")
        #expect(recorded.talk.isEmpty)

        let rejected = RecordedIO()
        #expect(await rejected.run("versoin") == .usage)
        #expect(rejected.output.isEmpty)
        #expect(
            rejected.talk
                == "countersign: there is no command `versoin`\n  did you mean `countersign version`?\n")
    }

    @Test func userUnblockSuggestsUserAllow() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("user", "unblock", "shop", "ada") == .usage)
        #expect(recorded.talk.hasSuffix("did you mean `countersign user allow`?\n"))
    }

    @Test(arguments: [("tail", "app"), ("admin token create", "name")])
    func anExtraWordSuggestsTheMissingFlag(command: String, flag: String) async {
        let recorded = RecordedIO()
        #expect(await recorded.run(line: command + " shop") == .usage)
        #expect(recorded.talk.hasSuffix("did you mean --\(flag) shop?\n"))
    }

    @Test func theErrorOfACommandDecidesTheExitCode() async {
        let recorded = RecordedIO()
        let error = CommandError(.conflict, "taken", hint: "choose another")
        #expect(await recorded.run("fail", commands: [Self.failing(with: error)]) == .conflict)
        #expect(recorded.talk == "countersign: taken\n  choose another\n")
    }

    @Test func anErrorThatIsNotACommandErrorIsAFailure() async {
        let recorded = RecordedIO()
        #expect(await recorded.run("fail", commands: [Self.failing(with: CancellationError())]) == .failed)
        #expect(recorded.talk.hasPrefix("countersign: "))
    }

    @Test(arguments: [
        ([:], true, true), (["NO_COLOR": "1"], true, false), (["TERM": "dumb"], true, false),
        ([:], false, false),
        (["NO_COLOR": ""], true, true),
    ])
    func coloursArePrintedOnlyOnATerminalThatSupportsThem(
        environment: [String: String], isInteractive: Bool, isColoured: Bool
    ) async {
        let recorded = RecordedIO(environment: environment, isInteractive: isInteractive)
        _ = await recorded.run("nothing")
        #expect(recorded.talk.contains("\u{1B}[") == isColoured)
    }

    @Test func anOutputErrorIsAFailure() async {
        let io = CommandIO(
            output: { _ in throw CommandError(.failed, "disk full") }, talk: { _ in }, input: { [] },
            environment: [:],
            isInteractive: false)
        #expect(await CommandLineProgram(commands: CommandTable.all, io: io).run(["version"]) == .failed)
    }
}
