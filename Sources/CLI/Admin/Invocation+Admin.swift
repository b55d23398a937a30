internal import Foundation

extension Flag {
    static let server = Flag(
        "server", .text("URL"), environment: "COUNTERSIGN_SERVER",
        help: "work on the gateway at this URL instead of the data directory")

    static let tokenFile = Flag(
        "token-file", .path("FILE"),
        help: "an API token for the server; - reads standard input; or $COUNTERSIGN_TOKEN, or a profile")

    static let certificateAuthorityFile = Flag(
        "ca-file", .path("FILE"), environment: "COUNTERSIGN_CA_FILE",
        help: "certificates to trust instead of the system's")

    static let allowPlainHTTP = Flag(
        "allow-plain-http", help: "send the token over http to another machine")

    static let profile = Flag(
        "profile", .text("NAME"), environment: "COUNTERSIGN_PROFILE", completes: .profiles,
        help: "work on the gateway of this profile")

    static let verbose = Flag(
        "verbose", letter: "v",
        help: "print the location, and each request to a remote gateway: status, time and request id")

    static let target = connection + [.profile, .verbose] + local

    static let connection = [Flag.server, .tokenFile, .certificateAuthorityFile, .allowPlainHTTP]
}

extension Invocation {
    /// The target from flags, else from the environment, else the profile in use, else the default data directory.
    /// Throws `usage` for two targets, `notAuthorized` for a server without a token, and, unless `makes` is set,
    /// `notFound` without data.
    func admin(makingData makes: Bool = false) throws -> any AdminClient {
        if let remote = try remoteAdmin() { return remote }
        if flagValues[Flag.tokenFile.name] != nil {
            throw CommandError(.usage, "--token-file needs a server", hint: "add --server URL")
        }
        let admin = try LocalAdmin(locationWithData(makingData: makes), warn: { [io] in io.say($0) })
        note("\(admin.location), without a gateway")
        return admin
    }

    private var note: @Sendable (String) -> Void {
        guard flagValues[Flag.verbose.name] != nil else { return { _ in } }
        return { [io] line in io.say("  " + TerminalText.safe(line)) }
    }

    private enum RemoteGateway {
        case server(String)
        case profile(Profile)
    }

    /// Nil if the command works on a local data directory or a database.
    private func elsewhere() throws -> RemoteGateway? {
        let candidates: [(server: String?, profile: String?, hasData: Bool)] = [
            (
                flagValues[Flag.server.name]?.last, flagValues[Flag.profile.name]?.last,
                Flag.location.contains { flagValues[$0.name] != nil }
            ),
            (
                io.variable("COUNTERSIGN_SERVER"), io.variable("COUNTERSIGN_PROFILE"),
                Flag.location.contains { $0.environment.flatMap(io.variable) != nil }
            ),
        ]
        for candidate in candidates {
            switch (candidate.server, candidate.profile, candidate.hasData) {
            case (nil, nil, false): continue
            case (nil, nil, true): return nil
            case (let server?, nil, false): return .server(server)
            case (nil, let name?, false):
                return .profile(try Profiles(environment: io.environment).named(name))
            default:
                throw CommandError(
                    .usage, "more than one gateway or data directory was given",
                    hint: "give one of --server, --profile, --data and --database")
            }
        }
        return try Profiles(environment: io.environment).inUse.map { .profile($0) }
    }

    /// The remote gateway to use; nil for a data directory or a database.
    func remoteAdmin() throws -> RemoteAdmin? {
        switch try elsewhere() {
        case nil: nil
        case .server(let url): try remoteAdmin(url)
        case .profile(let profile):
            try RemoteAdmin(
                server(profile.server, of: profile), token: fileToken() ?? profile.token, note: note)
        }
    }

    /// Throws `usage` for a remote gateway. Called by commands that need local data.
    func requireDataHere() throws {
        guard try elsewhere() == nil else {
            throw CommandError(
                .usage, "`\(commandName)` works on a data directory or database, not on a remote gateway",
                hint: "run it on the gateway's machine, with --data or --database")
        }
    }

    private func remoteAdmin(_ url: String) throws -> RemoteAdmin {
        if let token = try apiToken() { return try RemoteAdmin(server(url), token: token, note: note) }
        let profiles = try Profiles(environment: io.environment).all
        let known = profiles.first { $0.server == url || $0.server + "/" == url }
        let server = try server(url, of: known)
        guard let known else {
            throw CommandError(
                .notAuthorized, "there is no API token for \(server.url)",
                hint: "--token-file FILE, $COUNTERSIGN_TOKEN, or `countersign profile add`")
        }
        return try RemoteAdmin(server, token: known.token, note: note)
    }

    /// The server at `url`. Flags, the environment and `profile` give its CA file and allow plain HTTP.
    func server(_ url: String, of profile: Profile? = nil) throws(CommandError) -> RemoteAdmin.Server {
        try RemoteAdmin.Server(
            url: url,
            certificateAuthorityFile: try value(of: .certificateAuthorityFile)
                ?? profile?.certificateAuthorityFile,
            allowsPlainHTTP: isSet(.allowPlainHTTP) || profile?.allowsPlainHTTP == true
        ).checked()
    }

    /// The API token from `--token-file` or the environment; nil without either.
    func apiToken() throws -> String? { try fileToken() ?? io.variable("COUNTERSIGN_TOKEN") }

    private func fileToken() throws -> String? {
        try value(of: .tokenFile).map { try secret(ofFile: $0) }
    }

    /// A secret without white space around it, from a file or, for `-`, from standard input.
    func secret(ofFile path: String) throws -> String {
        let text = try text(ofFile: path).trimmingCharacters(in: .whitespacesAndNewlines)
        guard !text.isEmpty else {
            throw CommandError(.usage, "\(path == "-" ? "standard input" : path) is empty")
        }
        return text
    }

    /// A secret from the file of `flag`, else from a prompt, else from standard input. With `isNew`, prompts twice.
    func secret(of flag: Flag, asking question: String, isNew: Bool = false) throws -> String {
        if let path = try value(of: flag) { return try secret(ofFile: path) }
        if let answer = io.ask(question) {
            guard !answer.isEmpty else { throw CommandError(.usage, "nothing was typed") }
            guard !isNew || io.ask("\(question) again") == answer else {
                throw CommandError(.usage, "the two entries differ; nothing was changed")
            }
            return answer
        }
        return try secret(ofFile: "-")
    }
}
