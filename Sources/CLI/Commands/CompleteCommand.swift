internal import CountersignCore

enum CompleteCommand {
    private static let words = Positional(
        "WORDS", .any, mayBeEmpty: true,
        help: "after --, the words behind the program's name; the last is completed")
    /// The longest wait for suggestions from a gateway or its data, in seconds.
    private static let limit = 2.0
    /// The number of items that are read for suggestions, which is one page of the admin API.
    private static let newest = "500"

    /// `table` is a closure, because the table contains this command.
    static func command(table: @escaping @Sendable () -> [Command]) -> Command {
        Command(
            "complete", summary: "Print what a command line can continue with, one per line",
            details: """
                The scripts of `countersign completion` call it. Each line is a word, a tab and a description; :files stands for
                file names. Ids come from the gateway or data that the line, the environment or the profile in use names. Users
                are those of an app's newest events: pseudonyms if a remote gateway's token has only the scope read.
                """,
            positionals: [words],
            examples: ["Which apps are offered?": "countersign complete -- app show ''"]
        ) { invocation in
            let completion = Completion(invocation.allWords(of: words), commands: table())
            var found = completion.words
            switch completion.candidates {
            case nil, .commands: break
            case .words(let words): found += words.map { ($0, "") }
            case .files: found.append((":files", ""))
            case .profiles:
                found += try Profiles(environment: invocation.io.environment).all.map { ($0.name, $0.server) }
            case .list(let list, let member):
                found += try await items([list], member, completion, invocation.io)
            case .ofApp(let list, let member):
                guard let app = completion.app else { break }
                found += try await items(["apps", app, list], member, completion, invocation.io)
            }
            for (word, about) in found { try invocation.io.print(about.isEmpty ? word : "\(word)\t\(about)") }
        }
    }

    private static func items(
        _ path: [String], _ member: String, _ completion: Completion, _ io: CommandIO
    ) async throws -> [(String, String)] {
        let invocation = Invocation(
            commandName: "complete", flags: Flag.target, positionals: [], flagValues: completion.flagValues,
            words: [:], io: io)
        // The shell waits for this command. The task is abandoned after `limit`, because it may not be cancellable.
        let (pages, page) = AsyncThrowingStream.makeStream(of: JSONValue.self)
        Task {
            do {
                let request = AdminRequest(method: "GET", path: path, query: [("limit", newest)])
                page.yield(try await invocation.admin().send(request).body)
            } catch {
                page.finish(throwing: error)
            }
        }
        io.schedule(limit) { page.finish() }
        let items = try await pages.first { _ in true }?["items"].elements ?? []
        let values = items.compactMap { $0[member].text }
        return Set(values.filter(isPlain)).sorted().map { ($0, "") }
    }

    /// Whether a shell takes the text as one word. Clients choose user ids, and bash inserts completions unquoted.
    private static func isPlain(_ value: String) -> Bool {
        value.utf8.allSatisfy { $0.isASCIIAlphanumeric(or: "-_.@+/%,") } && !value.hasPrefix("-")
    }
}
