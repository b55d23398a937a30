internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayStorage

enum TailCommand {
    private static let app = Flag("app", .text("APP"), completes: .apps, help: "only this app")
    private static let user = Flag(
        "user", .text("ID"), completes: .users, help: "only this user: the id or the pseudonym")
    private static let count = Flag(
        "count", .integer("N", 1...1_000_000_000), help: "stop after this many new ones; by default at Ctrl-C"
    )

    private static let last = Flag(
        "last", .integer("N", 1...500), help: "with --app: begin with this many earlier requests")

    static let command = Command(
        "tail", summary: "Print a running gateway's verdicts as they happen",
        details: """
            Prints one line per request, with --json one object per line. A server shows pseudonyms instead of user ids to a
            viewer and to a token with only the scope read. If the connection ends, it reconnects and resumes where it
            stopped; missed verdicts are reported on standard error. On a data directory it finds the running gateway and
            creates a token for itself, which it deletes at the end.
            """,
        flags: [app, .code, user, count, last, .json] + Flag.target,
        examples: ["The next expired token": "countersign tail --code EXPIRED --count 1"]
    ) { invocation in
        let remote = try invocation.remoteAdmin()
        let last = try invocation.integer(of: last)
        let app = try invocation.value(of: app)
        guard last == nil || app != nil else {
            throw CommandError(.usage, "--last needs one app", hint: "name it with --app")
        }
        var options = Tail.Options(
            query: [("app", app), ("code", try invocation.code()), ("user", try invocation.value(of: user))],
            count: try invocation.integer(of: count), printsJSON: invocation.printsJSON)
        if let last, let app { options.earlier = Tail.Earlier(app: app, count: last) }
        let tail = Tail(options, io: invocation.io, connect: try connection(invocation, remote))
        let (result, isCancelled) = await StopSignals().cancelling { try await tail.run() }
        if isCancelled, case .failure = result { throw ExitCode.interrupted }
        try result.get()
    }

    private static func connection(
        _ invocation: Invocation, _ remote: RemoteAdmin?
    ) throws -> @Sendable () async throws -> Tail.Connection {
        if let remote { return { Tail.Connection(admin: remote) } }
        return connection(
            to: try invocation.storageLocation(),
            certificateAuthorityFile: try invocation.value(of: .certificateAuthorityFile),
            allowsPlainHTTP: invocation.isSet(.allowPlainHTTP))
    }

    static func connection(
        to location: StorageLocation, certificateAuthorityFile: String? = nil, allowsPlainHTTP: Bool = false
    ) -> @Sendable () async throws -> Tail.Connection {
        {
            try await Tail.Connection(
                toGatewayOn: location, certificateAuthorityFile: certificateAuthorityFile,
                allowsPlainHTTP: allowsPlainHTTP, tokenName: "tail", scope: "write")
        }
    }
}

extension Tail.Connection {
    /// The token's lifetime, in case the command is killed before it deletes the token. The gateway ends the
    /// stream when the token expires.
    private static let tokenSeconds = 86_400.0

    /// Connects with a new token, which is deleted on close. With `app`, the token reads the app's events, at the URL
    /// for clients.
    init(
        toGatewayOn location: StorageLocation, certificateAuthorityFile authority: String?,
        allowsPlainHTTP: Bool, tokenName: String, scope: String, app: String? = nil
    ) async throws {
        let running = try location.requireRunningGateway()
        // Checked before a token is created.
        let server = try Self.server(
            at: app == nil ? running.adminURL : running.url, of: location,
            certificateAuthorityFile: authority, allowsPlainHTTP: allowsPlainHTTP)
        let local = try LocalAdmin(location)
        let expires = Milliseconds(Date().addingTimeInterval(Self.tokenSeconds)).count
        let made = try await local.post(
            "tokens",
            body: [
                "name": .string(tokenName), "scopes": [.string(scope)], "expires_ms": .integer(expires),
                "app": app.map { .string($0) } ?? .null,
            ])
        let close = { @Sendable in _ = try? await local.delete("tokens", made["id"].text ?? "") }
        let admin: RemoteAdmin
        do {
            admin = try RemoteAdmin(server, token: made["token"].text ?? "")
        } catch {
            await close()
            throw error
        }
        self.init(admin: admin, close: close)
    }

    /// Throws `usage` for plain HTTP to another machine. Only a gateway on a database may run on another machine, so
    /// the gateway of a data directory is not checked.
    static func server(
        at url: String, of location: StorageLocation, certificateAuthorityFile: String? = nil,
        allowsPlainHTTP: Bool = false
    ) throws(CommandError) -> RemoteAdmin.Server {
        let isHere = if case .folder = location { true } else { false }
        return try RemoteAdmin.Server(
            url: url, certificateAuthorityFile: certificateAuthorityFile,
            allowsPlainHTTP: isHere || allowsPlainHTTP
        ).checked()
    }
}
