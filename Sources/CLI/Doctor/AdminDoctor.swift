internal import CountersignCore
internal import Foundation

struct AdminDoctor: Sendable {
    let admin: any AdminClient
    var now: @Sendable () -> Date = { Date() }

    /// All checks of a running gateway, in order. If a request fails, returns only a finding about this failure.
    func gateway() async -> [Finding] {
        await findings(named: "gateway") {
            let began = now()
            let overview = try await admin.get("overview").body
            let ended = now()
            let milliseconds = Milliseconds(seconds: ended.timeIntervalSince(began)).count
            var found = [Finding.ok("gateway", "\(admin.location) answers after \(milliseconds) ms")]
            found.append(Finding.version(overview["version"].shown))
            if let theirs = overview["now_ms"].integer {
                found.append(Finding.clock(Milliseconds(theirs).seconds, asked: began, answered: ended))
            }
            for check in overview["ready"]["checks"].elements {
                let (name, detail) = (check["name"].shown, check["detail"].shown)
                found.append(
                    check["ok"] == .bool(true)
                        ? .ok(name, detail)
                        : .failed(name, detail, "countersign doctor, on the gateway's machine"))
            }
            // `apps()` finds the warnings about apps, with remedies.
            found += overview["warnings"].elements.filter { $0["app"].text == nil }
                .map { .warning($0["code"].shown, $0["text"].shown) }
            return found + (try await apps())
        }
    }

    func database() async -> [Finding] {
        await findings(named: "database") {
            let status = try await admin.get("cluster").body
            let live = status["gateways"].elements.filter { $0["live"] == .bool(true) }.count
            let text =
                "PostgreSQL \(status["server_version"].shown), schema \(status["schema_version"].shown), "
                + live.counted("live gateway")
            let warnings = status["warnings"].elements.map {
                Finding.warning($0["code"].shown, $0["text"].shown, "countersign cluster status")
            }
            let none = Finding.warning("gateway", "no gateway runs on this database", "countersign serve")
            return [.ok("database", text)] + warnings + (live == 0 ? [none] : []) + (try await apps())
        }
    }

    /// Converts an error that stops the checks to a finding, so that all output formats include it.
    private func findings(named name: String, _ body: () async throws -> [Finding]) async -> [Finding] {
        do {
            return try await body()
        } catch let error as CommandError {
            return [.failed(name, error.reason, error.hint, code: error.code)]
        } catch {
            return [.failed(name, "\(error)")]
        }
    }

    func apps() async throws -> [Finding] {
        let apps = try await admin.items("apps")
        guard !apps.isEmpty else {
            return [.warning("apps", "there is no app", "countersign app create shop")]
        }
        var found: [Finding] = []
        for app in apps { found += try await findings(of: app) }
        return found
    }

    private func findings(of app: JSONValue) async throws -> [Finding] {
        let id = app["id"].shown
        let name = "app \(id)"
        let found =
            try await (writeKeys(of: id) + keys(of: id, app)).map {
                Finding.failed(name, $0.detail, $0.remedy)
            } + receivers(of: id).map { Finding.warning(name, $0.detail, $0.remedy) }
        guard found.isEmpty else { return found }
        let enforcement = app["enforcement"].shown
        if enforcement != "disabled", app.isWithoutKeys {
            return [
                .warning(
                    name, "enforcement is \(enforcement), and there is no key",
                    "countersign key add \(id) public.pem")
            ]
        }
        let others = app.hasKeySources ? ", and the keys of a provider" : ""
        return [.ok(name, "\(enforcement), \((app["keys"].integer ?? 0).counted("key"))\(others)")]
    }

    private typealias Problem = (detail: String, remedy: String)

    private func writeKeys(of app: String) async throws -> [Problem] {
        guard try await admin.items("apps", app, "write-keys", limit: 1).isEmpty else { return [] }
        return [("there is no write key, so no app can send", "countersign write-key create \(app)")]
    }

    private func keys(of app: String, _ shown: JSONValue) async throws -> [Problem] {
        guard shown["keys"].integer ?? 0 > 0 else { return [] }
        return try await admin.items("apps", app, "keys").filter { $0["kty"] == .null }.map { key in
            (
                "the key \(key["id"].shown) cannot be used: it cannot be read as a key",
                "countersign key delete \(app) \(key["id"].shown)"
            )
        }
    }

    private func receivers(of app: String) async throws -> [Problem] {
        var found: [Problem] = []
        for source in try await admin.get("apps", app, "key-source").body["sources"].elements {
            let url = source["url"].shown
            if let problem = source["problem"].text {
                found.append(
                    (
                        "the keys that the app follows at \(url) cannot be fetched: \(TerminalText.safe(problem))",
                        "countersign key list \(app)"
                    ))
            } else if admin is LocalAdmin {
                found.append(
                    (
                        "the app follows \(url); only a running gateway fetches its keys",
                        "countersign doctor --server URL"
                    ))
            }
        }
        for webhook in try await admin.items("apps", app, "webhooks") {
            found += problems(
                of: webhook, "webhook", webhook["id"].shown, of: app, remedies: ["failing": "deliveries"])
        }
        for stream in try await admin.items("apps", app, "streams") {
            found += problems(of: stream, "stream", stream["name"].shown, of: app)
        }
        let consumers = try await unlessMissing { try await admin.items("apps", app, "consumers") } ?? []
        for consumer in consumers {
            found += problems(
                of: consumer, "consumer", consumer["name"].shown, of: app, remedies: ["missed": "seek"],
                // Some consumers run once a day.
                lateHours: 48)
        }
        // A gateway of an earlier version does not have this endpoint.
        let files = try await unlessMissing { try await admin.get("apps", app, "files").body } ?? .null
        guard files["enabled"].isTrue else { return found }
        return found + problems(of: files, "files", nil, of: app)
    }

    /// `remedies` maps a problem (`failing`, `missed` or `late`) to the subcommand that helps; the default is `show`.
    /// Unread events are reported from an age of `lateHours`. The default suits files, written after each hour.
    private func problems(
        of way: JSONValue, _ noun: String, _ name: String?, of app: String,
        remedies: [String: String] = [:], lateHours: Int64 = 2
    ) -> [Problem] {
        let (label, arguments) =
            name.map { ("the \(noun) \($0)", "\(app) \($0)") } ?? ("the hourly event files", app)
        let verb = name == nil ? "are" : "is"
        func remedy(_ problem: String) -> String {
            "countersign \(noun) \(remedies[problem] ?? "show") \(arguments)"
        }
        var found: [Problem] = []
        switch way["state"].text {
        case "paused": found.append(("\(label) \(verb) paused", "countersign \(noun) resume \(arguments)"))
        case "failing":
            let reason = way["reason"].text ?? way["error"].shown
            found.append(("\(label) \(name == nil ? "fail" : "fails"): \(reason)", remedy("failing")))
        default: break
        }
        if way["events_missed"] == .bool(true) {
            found.append(
                ("\(label) \(name == nil ? "have" : "has") missed events that were deleted", remedy("missed"))
            )
        }
        let oldest = way["oldest_unread_ms"].integer ?? .max
        if way["state"].text == "active", Milliseconds(now()).count - lateHours * 3_600_000 > oldest {
            found.append(("\(label) \(verb) \(way["lag_events"].counted("event")) behind", remedy("late")))
        }
        return found
    }

    /// Nil for `notFound`, as when no gateway has run on this data directory yet.
    private func unlessMissing<Value>(_ read: () async throws -> Value) async throws -> Value? {
        do {
            return try await read()
        } catch let error as CommandError where error.code == .notFound {
            return nil
        }
    }
}

extension JSONValue {
    var isWithoutKeys: Bool { self["keys"] == 0 && !hasKeySources }

    fileprivate var hasKeySources: Bool { self["features"].elements.contains("key_sources") }
}
