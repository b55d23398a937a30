internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

enum ServeCommand {
    static let command = Command(
        "serve", summary: "Run the gateway",
        details: """
            Creates the data directory if it does not exist, and prints the gateway's URL on standard output once it
            listens. On SIGTERM or Ctrl-C it stops accepting connections, finishes the requests in flight, commits and exits
            0. A second signal ends it immediately. On SIGHUP it reloads a changed certificate and changed apps at once
            rather than within a second; settings need a restart. The log goes to standard error, one line per request: text
            on a terminal, JSON elsewhere. In the background of a shell (`serve &`) only errors are logged to the terminal,
            unless log-level is set.
            `countersign config print --origin` shows the settings and where each comes from.
            """,
        flags: SettingReader.flags,
        examples: [
            "On this machine": "countersign serve",
            "On a free port, with the data here": "countersign serve --data ./data --port 0",
        ]
    ) { invocation in
        leaveNoCore()
        SQLiteStorage.prepareProcess()
        let running = Lock<Gateway?>(nil)
        let signals = StopSignals { running.withLock { $0 }?.reload() }
        var configuration = try SettingReader(invocation: invocation).configuration()
        let isQuiet = adaptLog(of: &configuration, to: invocation.io)
        ProcessLimits.prepare(
            for: configuration.limits, listeners: configuration.adminHost == nil ? 1 : 2)
        // Connects to the database first, because this check reports a wrong address with a hint.
        if let address = configuration.database { _ = try Invocation.schemaVersion(of: address) }
        let gateway = try Gateway(configuration: configuration)
        running.withLock { $0 = gateway }
        try gateway.start()
        let url = configuration.url(port: gateway.port)
        try announce(url, gateway, configuration, invocation.io)
        if isQuiet {
            invocation.io.say("Log:   errors only, in the background; --log-level info for requests")
        }
        _ = await signals.first()
        invocation.io.say("Stopping: requests in flight are answered first.")
        gateway.stop()
        invocation.io.say("Stopped.")
    }

    /// Logs text at a terminal. In the background, where lines interrupt typing, logs only errors and returns true,
    /// unless the log level is set.
    static func adaptLog(of configuration: inout GatewayConfiguration, to io: CommandIO) -> Bool {
        guard io.isInteractive else { return false }
        configuration.logFormat = .text(isColored: io.usesColor)
        let level = configuration.settings.first { $0.name == "log-level" }
        guard io.isInBackground, level?.origin == SettingReader.Origin.standard.text else { return false }
        configuration.logLevel = .error
        return true
    }

    /// Disables core dumps, which would contain tokens and keys. If that fails, the service manager's limit
    /// applies.
    private static func leaveNoCore() {
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        #if canImport(Glibc)
            _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none)
        #else
            _ = setrlimit(RLIMIT_CORE, &none)
        #endif
    }

    private static func flag(for location: StorageLocation) -> String {
        switch location {
        case .folder(let path): "--data \(path.quotedForShell)"
        case .database(let address): "--database " + "\(address)".quotedForShell
        }
    }

    private static func announce(
        _ url: String, _ gateway: Gateway, _ configuration: GatewayConfiguration, _ io: CommandIO
    ) throws {
        let location = StorageLocation(configuration)
        let apps = try gateway.apps()
        try io.print(url)
        io.say("Data:  \(location)")
        io.say("Ready: \(url)/readyz")
        let page = configuration.dashboardURL(port: gateway.adminPort) + "/admin/"
        let local = configuration.adminURL(port: gateway.adminPort) + "/admin/"
        switch Result(catching: { () throws(GatewayError) in try gateway.makeSetupToken() }) {
        case .success(let token?):
            io.say("Admin: \(page)#/setup/\(token)")
            io.say("       That link sets the first password, once, within 30 minutes.")
            if page != local { io.say("       Through an SSH tunnel: \(local)#/setup/\(token)") }
        case .success(nil): io.say("Admin: \(page)")
        case .failure(let error):
            guard error.code == .storage else { throw error }
            // With a full disk, the gateway serves, but cannot store the token of the link.
            io.say("Admin: \(page)")
            io.say("       The link that sets the first password is made at the next start: \(error.reason)")
        }
        if apps.isEmpty {
            io.say("Next:  countersign app create shop \(Self.flag(for: location))")
        } else {
            let list = apps.map { "\($0.id) (\($0.enforcement.rawValue))" }.joined(separator: ", ")
            io.say("Apps:  \(list)")
        }
        io.say("Stop:  \(io.isInBackground ? "kill \(getpid())" : "Ctrl-C")")
    }
}
