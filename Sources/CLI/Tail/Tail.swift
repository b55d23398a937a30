internal import CountersignCore
internal import GatewayModel

/// Follows live verification results and reconnects when a connection ends.
final class Tail: Sendable {
    struct Options: Sendable {
        var query: [(name: String, value: String?)] = []
        /// The number of results to show; nil for no limit.
        var count: Int?
        var printsJSON = false
        var earlier: Earlier?
    }

    struct Earlier: Sendable {
        var app: String
        var count: Int
    }

    struct Connection: Sendable {
        let admin: RemoteAdmin
        /// Called after the connection has ended.
        var close: @Sendable () async -> Void = {}
    }

    private struct LimitReached: Error {}

    private struct State {
        var parser = ServerSentEvents()
        var lastID: String?
        var isConnected = false
        var failures = 0
        var shown = 0
        var hasHeader = false
    }

    static let retries = RetryPolicy(baseDelay: 1, maximumDelay: 30)

    private let options: Options
    private let io: CommandIO
    private let connect: @Sendable () async throws -> Connection
    private let pause: @Sendable (Double) async throws -> Void
    private let state = Lock(State())

    init(
        _ options: Options, io: CommandIO, connect: @escaping @Sendable () async throws -> Connection,
        pause: @escaping @Sendable (Double) async throws -> Void = { try await Task.sleep(for: .seconds($0)) }
    ) {
        self.options = options
        self.io = io
        self.connect = connect
        self.pause = pause
    }

    /// Throws if the first connection fails, or if a later failure is permanent.
    func run() async throws {
        while true {
            do {
                let connection = try await connect()
                do {
                    if let earlier = options.earlier, !hasBeenConnected {
                        try await show(earlier, from: connection.admin)
                    }
                    try await follow(connection.admin)
                } catch {
                    await connection.close()
                    throw error
                }
                await connection.close()
            } catch is LimitReached {
                return
            } catch let error as CommandError where error.code == .unavailable && hasBeenConnected {
                io.say("\(error.reason).")
            }
            try await pause(nextPause())
        }
    }

    private var hasBeenConnected: Bool { state.withLock { $0.isConnected } }

    /// 1, 2, 4 up to 30 seconds, shortened randomly by up to a half to distribute the clients.
    private func nextPause() -> Double {
        let failures = state.withLock { state in
            state.failures += 1
            return state.failures
        }
        let seconds = Self.retries.delay(afterFailure: failures, fraction: .random(in: 0.5...1))
        io.say("The connection has ended; trying again in \(Int(seconds.rounded(.up))) s.")
        return seconds
    }

    private func follow(_ admin: RemoteAdmin) async throws {
        let lastID = state.withLock { state in
            state.parser = ServerSentEvents()
            return state.lastID
        }
        try await admin.stream(
            AdminRequest(method: "GET", path: ["live"], query: options.query), accept: "text/event-stream",
            lastEventID: lastID
        ) { [self] bytes in
            for event in state.withLock({ $0.parser.read(bytes) }) { try take(event, of: admin) }
        }
    }

    private func take(_ event: ServerSentEvents.Event, of admin: RemoteAdmin) throws {
        let data = JSONValue(parsing: Array(event.data.utf8))
        if let id = event.id { state.withLock { $0.lastID = id } }
        guard let data else { return }
        switch event.name {
        case "sampling":
            let isNew = state.withLock { state in
                defer { (state.isConnected, state.failures) = (true, 0) }
                return !state.isConnected || state.failures > 0
            }
            if isNew {
                io.say("Connected to \(admin.location).")
                if !options.printsJSON, !state.withLock({ $0.hasHeader }) { printHeader() }
            }
            if let oneIn = data["one_in"].integer, oneIn > 1 {
                io.say("Too many to show: printing one in \(oneIn).")
            } else if !isNew {
                io.say("Printing every verdict again.")
            }
        case "gap":
            let missed = data["missed"].integer
            io.say(
                missed.map { "Missed \($0) verdicts." }
                    ?? "Missed verdicts: it is not known how many.")
        case "verdict": try show(data)
        default: break
        }
    }

    private func printHeader() {
        state.withLock { $0.hasHeader = true }
        io.say(line(Self.header))
    }

    /// Shows earlier requests, oldest first: stored ones by their events, and failed ones by their samples.
    /// They do not count towards ``Options/count``.
    private func show(_ earlier: Earlier, from admin: RemoteAdmin) async throws {
        func value(_ name: String) -> String? { options.query.first { $0.name == name }?.value ?? nil }
        let events = try await admin.items(
            "apps", earlier.app, "events", query: [("user", value("user"))], limit: earlier.count)
        // Samples can be filtered by code but not by user.
        let samples =
            value("user") == nil
            ? try await admin.items(
                "apps", earlier.app, "samples", query: [("code", value("code"))],
                limit: earlier.count) : []
        var found: JSONObject = [:]
        for event in events {
            guard let word = Self.verdicts[event["verdict"].text ?? ""] else { continue }
            let code = event["code"].integer.flatMap { AuthErrorCode(rawValue: Int($0)) }
            found[event["request_id"].text ?? event["seq"].shown] = Self.row(
                of: earlier.app,
                [
                    "at_ms": event["received_ms"], "verdict": .string(word), "code": event["code"],
                    "reason": code.map { .string($0.reason) } ?? .null,
                    "user": event["user_id"] == .null ? event["anonymous_id"] : event["user_id"],
                    "enforcement": event["enforcement"], "request_id": event["request_id"],
                ])
        }
        for sample in samples {
            found[sample["request_id"].text ?? sample["id"].shown] = Self.row(
                of: earlier.app, sample.members ?? [:], ["sample_id": sample["id"]])
        }
        let code = value("code")
        let rows = found.values.filter { code == nil || $0["code"].shown == code }
            .sorted { $0["at_ms"].integer ?? 0 < $1["at_ms"].integer ?? 0 }.suffix(earlier.count)
        if !options.printsJSON { printHeader() }
        for row in rows { try print(row) }
    }

    /// An earlier request with all members of a live result. Members without a value are null.
    private static func row(
        of app: String, _ members: JSONObject, _ more: JSONObject = [:]
    ) -> JSONValue {
        let names = [
            "id", "at_ms", "verdict", "code", "reason", "endpoint", "user", "sdk", "app_version", "client",
            "enforcement", "request_id", "sample_id",
        ]
        var row = JSONObject(uniqueKeysWithValues: names.map { ($0, members[$0] ?? more[$0] ?? .null) })
        row["app"] = .string(app)
        return .object(row)
    }

    /// Maps the result of an event to the result of its request. Events of an app's own server were accepted.
    private static let verdicts = [
        "verified": "accepted", "server": "accepted", "warned": "warned", "not_judged": "not_judged",
        "anonymous": "anonymous",
    ]

    private static let header = ["TIME", "VERDICT", "CODE", "APP", "USER", "ENDPOINT"]
    private static let widths = [24, 10, 26, 16, 12, 0]

    private func line(_ cells: [String], color: (String) -> String = { $0 }) -> String {
        let padded = zip(cells, Self.widths).map { $0.padding(to: $1) }
        let text = padded.enumerated().map { $0.offset == 1 ? color($0.element) : $0.element }.joined(
            separator: " ")
        return String(text.reversed().drop { $0 == " " }.reversed())
    }

    private func show(_ verdict: JSONValue) throws {
        try print(verdict)
        let isEnough = state.withLock { state in
            state.shown += 1
            return state.shown == options.count
        }
        if isEnough { throw LimitReached() }
    }

    private func print(_ verdict: JSONValue) throws {
        if options.printsJSON {
            try io.print(verdict)
        } else {
            let code = verdict["code"] == .null ? "" : "\(verdict["code"].shown) \(verdict["reason"].shown)"
            let word = verdict["verdict"].shown
            let color: TerminalColor = word == "rejected" ? .bad : code.isEmpty ? .good : .doubtful
            try io.print(
                line([
                    verdict["at_ms"].time, word, code, verdict["app"].shown, verdict["user"].shown,
                    verdict["endpoint"].shown,
                ]) { io.colored($0, color) })
        }
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String {
        self + String(repeating: " ", count: max(0, width - count))
    }
}
