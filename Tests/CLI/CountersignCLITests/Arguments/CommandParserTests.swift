import Testing

@testable import CountersignCLI

struct CommandParserTests {
    private static let data = Flag(
        "data", .path("PATH"), default: "here", environment: "PLACE", help: "where")
    private static let port = Flag("port", .integer("PORT", 0...65535), default: "8787", help: "which port")
    private static let mode = Flag("mode", .choice(["disabled", "required"]), help: "how")
    private static let json = Flag("json", help: "as JSON")
    private static let app = Positional("APP", help: "an app")
    private static let rest = Positional("FILE", .any, help: "files")
    private static let state = Positional("STATE", choices: ["on", "off"], help: "a state")

    private static func command(_ path: String, _ positionals: [Positional] = []) -> Command {
        Command(
            path, summary: path, positionals: positionals, flags: [data, port, mode, json],
            examples: ["try": "countersign \(path)"]
        ) { _ in }
    }

    private let commands = [
        command("serve"), command("app create", [app]), command("app list"), command("send", [app, rest]),
        command("switch set", [state]), command("stream list", [app]),
    ]

    private func parse(
        _ line: String, environment: [String: String] = [:]
    ) throws(CommandError) -> CommandParser.Outcome {
        let parser = CommandParser(commands: commands, io: RecordedIO(environment: environment).io)
        return try parser.parse(line.split(separator: " ").map(String.init))
    }

    private func invocation(_ line: String, environment: [String: String] = [:]) throws -> Invocation {
        guard case .run(_, let invocation) = try parse(line, environment: environment) else {
            throw CommandError(.failed, "help was requested")
        }
        return invocation
    }

    @Test(arguments: [42, 11])
    func aLongIDMayBeginWithADash(length: Int) throws {
        let id = "-" + String(repeating: "a", count: length)
        #expect(try invocation("app create \(id)")[Self.app] == id)
        #expect(throws: CommandError.self) { try invocation("app create -short") }
    }

    @Test(arguments: [
        "sink list sink", "--data there sink list sink", "--data sink sink list sink", "stream list sink",
    ])
    func sinkIsAnAliasOfStream(line: String) throws {
        #expect(try invocation(line)[Self.app] == "sink")
        #expect(try invocation("--data there app create sink")[Self.app] == "sink")
    }

    @Test(arguments: [
        ("serve", "here", 8787), ("serve --data there", "there", 8787),
        ("serve --data=a=b --port=0", "a=b", 0),
        ("serve --port 65535", "here", 65535), ("serve --data -", "-", 8787),
    ])
    func valuesAreReadAfterASpaceOrAnEqualsSign(line: String, data: String, port: Int) throws {
        let invocation = try invocation(line)
        #expect(try invocation.value(of: Self.data) == data)
        #expect(try invocation.integer(of: Self.port) == port)
        #expect(!invocation.isSet(Self.json))
    }

    @Test(arguments: [
        "--json app create shop --port 1", "--port 1 --json app create shop",
        "--port=1 app create --json shop",
        "--data serve --json app create shop --port 1", "app --port 1 --json create shop",
        "--port=1 app --json create shop", "app --json --port 1 create shop",
        "app --port 1 create --json shop", "app create --json shop --port 1",
    ])
    func flagsAreReadBeforeBetweenAndAfterTheWordsOfACommand(line: String) throws {
        let invocation = try invocation(line)
        #expect(invocation.commandName == "app create")
        #expect(invocation[Self.app] == "shop")
        #expect(invocation.isSet(Self.json))
        #expect(try invocation.integer(of: Self.port) == 1)
        #expect(throws: CommandError.self) { try self.invocation("app --nothing create shop") }
    }

    @Test func everythingAfterTwoDashesIsAWord() throws {
        let invocation = try invocation("send shop -- --json --help -")
        #expect(invocation.allWords(of: Self.rest) == ["--json", "--help", "-"])
        #expect(!invocation.isSet(Self.json))
    }

    @Test func theEnvironmentWinsOverTheDefaultAndLosesToTheFlag() throws {
        let environment = ["PLACE": "variable"]
        #expect(try invocation("serve", environment: environment).value(of: Self.data) == "variable")
        #expect(try invocation("serve --data x", environment: environment).value(of: Self.data) == "x")
        #expect(try invocation("serve", environment: ["PLACE": ""]).value(of: Self.data) == "here")
    }

    @Test(arguments: [
        ("serv", "there is no command `serv`", "did you mean `countersign serve`?"),
        ("zzzzzzzz", "there is no command `zzzzzzzz`", "`countersign help --all` lists the commands"),
        ("app ls", "there is no command `app ls`", "did you mean `countersign app list`?"),
        ("app craete shop", "there is no command `app craete`", "did you mean `countersign app create`?"),
        (
            "app", "`app` needs a subcommand: create, list",
            "`countersign app --help` describes each"
        ),
        (
            "--prot 1 serve", "there is a flag but no command: --prot",
            "`countersign help --all` lists the commands"
        ),
        ("serve --prot 1", "`serve` has no flag --prot", "did you mean --port?"),
        (
            "serve --unheard-of", "`serve` has no flag --unheard-of",
            "`countersign serve --help` lists its flags"
        ),
        ("serve -port 1", "`serve` has no flag -port", "did you mean --port?"),
        ("serve --port", "--port needs a value", "--port PORT"),
        ("serve --port --json", "--port needs a value", "--port PORT"),
        ("serve --port 65536", "--port takes a whole number from 0 to 65535, not '65536'", nil),
        ("serve --port x", "--port takes a whole number from 0 to 65535, not 'x'", nil),
        ("serve --data=", "--data needs a path that is not empty", nil),
        ("serve --mode requird", "--mode takes disabled, required, not 'requird'", "did you mean required?"),
        ("serve --json=yes", "--json takes no value", nil),
        ("serve --port 1 --port 2", "--port is given twice", nil),
        ("serve now", "`serve` takes no argument 'now'", nil),
        ("app create", "`app create` needs APP", "APP: an app"),
        ("app create a b", "`app create` takes no argument 'b'", nil),
        ("switch set onn", "STATE is one of on, off, not 'onn'", "did you mean on?"),
    ])
    func parseErrorsNameTheFaultAndASuggestion(line: String, reason: String, hint: String?) throws {
        let error = #expect(throws: CommandError.self) { try parse(line) }
        #expect(error?.code == .usage)
        #expect(error?.reason == reason)
        #expect(error?.hint == hint)
    }

    @Test func anEnvironmentVariableIsCheckedLikeTheFlag() throws {
        let place = Flag("place", .choice(["a", "b"]), environment: "PLACE", help: "where")
        let command = Command("go", summary: "go", flags: [place], examples: [:]) { _ in }
        let io = RecordedIO(environment: ["PLACE": "c"]).io
        guard case .run(_, let invocation) = try CommandParser(commands: [command], io: io).parse(["go"])
        else {
            Issue.record("not an invocation")
            return
        }
        let error = #expect(throws: CommandError.self) { try invocation.value(of: place) }
        #expect(error?.reason == "PLACE: --place takes a, b, not 'c'")
    }

    @Test(arguments: [
        ("--help", [String]()), ("-h", []), ("app --help", ["app"]),
        ("app create --help", ["app", "create"]),
        ("serve --port -h", ["serve"]),
    ])
    func helpIsRecognisedAnywhereOnTheLine(line: String, path: [String]) throws {
        guard case .help(let topic) = try parse(line) else {
            Issue.record("not help")
            return
        }
        #expect(topic == path)
    }
}
