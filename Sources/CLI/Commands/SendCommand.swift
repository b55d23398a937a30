internal import CountersignCore
internal import CountersignCrypto
internal import CountersignJOSE
internal import CountersignTransport
internal import Foundation

enum SendCommand {
    private static let file = Positional(
        "FILE", .optional, completes: .files,
        help: "NDJSON, CSV, an access log or a GPX track; - or nothing reads standard input")
    private static let format = Flag(
        "format", .choice(SendInput.Format.allCases.map(\.rawValue)),
        help: "the file's format; default: by its name, else by its first byte")
    private static let writeKeyFile = Flag(
        "write-key-file", .path("FILE"), help: "the app's write key; or $COUNTERSIGN_WRITE_KEY")
    private static let key = Flag(
        "key", .path("FILE"), help: "a private key to sign a token for each user with, for trials")
    private static let userTokenFile = Flag(
        "user-token-file", .path("FILE"), help: "a user's token, sent with every request")

    static let command = Command(
        "send", summary: "Send events from a file or standard input and wait until they are stored",
        details: """
            An NDJSON line is {"event":"Order Completed","userId":"user-1","properties":{…}} or any other message of POST
            /v1/batch. CSV has a header; event, type, user_id, anonymous_id, timestamp and message_id (also userId,
            anonymousId and messageId) belong to the event, and all other columns are its properties: a number if it is
            written as in JSON (42, -7, 1.5), else text (+491701234567, 00501, 1e3, 1.10, true). A line that cannot be read, such as one that is not UTF-8 or longer
            than 1 MiB, is skipped and counted. Events of a user whose token is rejected are reported, and the others are
            sent. The command then exits with 1. Sending a file again stores nothing twice:
            message ids are derived from the file's name and lines; events from standard input or a pipe are new each
            time. If interrupted, run it again with the same file, URL and write key, and it resumes where it stopped. If
            a gateway cannot be reached at all, it gives up after half a minute, with 7; if the gateway answered before, it
            keeps waiting.
            """,
        positionals: [file],
        flags: [format, writeKeyFile, key, userTokenFile, .url, .profile, .json] + Flag.local,
        examples: ["An access log": "countersign send access.log --write-key-file write-key.txt"]
    ) { invocation in
        let plan = try Plan(invocation)
        let outcome = try await plan.run.run()
        try plan.report(outcome, invocation)
    }

    /// The parsed arguments. Not part of the command's closure, because the optimizer of Swift 6.3 crashes if the
    /// closure does everything.
    private struct Plan {
        let input: SendInput
        let checkpoint: SendCheckpoint
        let start: Int
        let bar: ProgressLine
        let run: SendRun

        init(_ invocation: Invocation) throws {
            let name = invocation.word(of: file) ?? "-"
            let bytes = try invocation.bytes(ofFile: name)
            let isPipe = name == "-" || !InputFile(path: name).hasOwnName
            let shown = name == "-" ? "standard input" : name
            let input = SendInput(
                bytes, named: name, isPipe: isPipe,
                format: try invocation.value(of: format).flatMap(SendInput.Format.init(rawValue:)))
            let io = invocation.io
            guard !bytes.isEmpty else {
                throw CommandError(.failed, "\(shown) is empty")
            }
            guard !input.events.isEmpty || !input.isGuess else {
                throw CommandError(
                    .failed, "\(shown) is not NDJSON, CSV, an access log or a GPX track",
                    hint:
                        "its first line: \(Self.start(of: bytes)); CSV from standard input needs --format csv"
                )
            }
            for problem in input.problems.prefix(5) {
                io.say("line \(problem.line) is skipped: \(problem.reason)")
            }
            if input.problems.count > 5 { io.say("… and \(input.problems.count - 5) more") }
            guard !input.events.isEmpty else {
                throw CommandError(
                    .failed, "\(shown) contains no events",
                    hint: input.problems.isEmpty ? "give its format with --format" : nil)
            }
            let (url, profile) = try invocation.destination()
            if let profile { io.say("To \(url.absoluteString), the profile \(profile.name).") }
            let writeKey = try SendCommand.writeKey(invocation)
            let checkpoint = SendCheckpoint(
                name: isPipe ? "-" : name, bytes: bytes, url: url, writeKey: writeKey,
                environment: io.environment)
            let start = min(checkpoint.done, input.events.count)
            if start > 0 { io.say("Resuming after \(start) events that are already stored.") }
            let bar = ProgressLine(total: input.events.count, from: start, io: io)
            self.input = input
            self.checkpoint = checkpoint
            self.start = start
            self.bar = bar
            var run = SendRun(
                events: Array(input.events.dropFirst(start)), url: url, writeKey: writeKey,
                signingKey: try invocation.value(of: key).map {
                    try SigningKey(pem: try invocation.text(ofFile: $0))
                },
                token: try invocation.value(of: userTokenFile).map(invocation.secret(ofFile:)),
                progress: { done, resumes in
                    checkpoint.note(start + resumes)
                    bar.show(start + done)
                },
                say: { bar.say($0) },
                pause: { try await Task.sleep(for: .seconds($0)) })
            run.transport = try SystemTransport.trusting(profile?.certificateAuthorityFile)
            self.run = run
        }

        private static func start(of bytes: [UInt8]) -> String {
            let line = String(decoding: bytes.prefix(60), as: UTF8.self).prefix { !$0.isNewline }
            return "'\(TerminalText.safe(String(line)))'"
        }

        func report(_ outcome: SendRun.Outcome, _ invocation: Invocation) throws {
            let io = invocation.io
            bar.end()
            checkpoint.finish()
            for problem in outcome.rejected.prefix(20) {
                io.say("line \(problem.line) was rejected: \(TerminalText.safe(problem.reason))")
            }
            if invocation.printsJSON {
                try io.print([
                    "accepted": .integer(Int64(outcome.accepted)),
                    "duplicates": .integer(Int64(outcome.duplicates)),
                    "rejected": .integer(Int64(outcome.rejected.count)),
                    "unreadable": .integer(Int64(input.problems.count)),
                    "resumed_behind": .integer(Int64(start)),
                ])
            } else {
                try io.print(
                    "stored \(outcome.accepted), already there \(outcome.duplicates), "
                        + "rejected \(outcome.rejected.count), unreadable \(input.problems.count)"
                )
            }
            guard outcome.rejected.isEmpty, input.problems.isEmpty else { throw ExitCode.failed }
        }
    }

    private static func writeKey(_ invocation: Invocation) throws -> String {
        if let path = try invocation.value(of: writeKeyFile) { return try invocation.secret(ofFile: path) }
        if let key = invocation.io.variable("COUNTERSIGN_WRITE_KEY") { return key }
        throw CommandError(
            .usage, "the write key is missing",
            hint: "--write-key-file FILE, or $COUNTERSIGN_WRITE_KEY: what `countersign app create` printed")
    }
}

/// The number of sent events of a file, stored in the account's state folder until the file is done.
struct SendCheckpoint: Sendable {
    private let path: String?

    /// Stores no position for `-`, because a pipe cannot be read again.
    init(name: String, bytes: [UInt8], url: URL, writeKey: String, environment: [String: String]) {
        guard name != "-" else {
            path = nil
            return
        }
        let home = (environment["HOME"] ?? ".") + "/.local/state"
        let state = environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home
        let app = Base64URL.encode(SHA256.digest(Array(writeKey.utf8)))
        let digest = SHA256.digest(Array("\(url.absoluteString)\n\(app)\n".utf8) + bytes)
        path = state + "/countersign/send-" + Base64URL.encode(Array(digest.prefix(12)))
    }

    var done: Int {
        path.flatMap { FileManager.default.contents(atPath: $0) }
            .flatMap { Int(String(decoding: $0, as: UTF8.self)) }.map { max(0, $0) } ?? 0
    }

    /// Stores the position. If that fails, the next run resumes earlier, and the gateway drops duplicates.
    func note(_ count: Int) {
        guard let path else { return }
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
        try? FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try? Data(String(count).utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    func finish() {
        if let path { try? FileManager.default.removeItem(atPath: path) }
    }
}
