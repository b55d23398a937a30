internal import CountersignCore
internal import Foundation

/// Checks a gateway through its admin API, remotely or on its storage.
struct AdminDoctor: Sendable {
    let admin: any AdminClient
    var now: @Sendable () -> Date = { Date() }

    /// All checks of a running gateway, in order. If it does not respond, only that finding.
    func gateway() async -> [Finding] {
        await looks(named: "gateway") {
            let began = now()
            let overview = try await admin.get("overview").body
            let ended = now()
            let milliseconds = Milliseconds(seconds: ended.timeIntervalSince(began)).count
            var found = [Finding.ok("gateway", "\(admin.place) answers after \(milliseconds) ms")]
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
            // Warnings about apps are found below, with remedies.
            found += overview["warnings"].elements.filter { $0["app"].text == nil }
                .map { .warning($0["code"].shown, $0["text"].shown) }
            return found + (try await apps())
        }
    }

    /// All checks of a shared database.
    func database() async -> [Finding] {
        await looks(named: "database") {
            let status = try await admin.get("cluster").body
            let live = status["gateways"].elements.filter { $0["live"] == .bool(true) }.count
            let text =
                "PostgreSQL \(status["server_version"].shown), schema \(status["schema_version"].shown), "
                + "\(live) live \(live == 1 ? "gateway" : "gateways")"
            let warnings = status["warnings"].elements.map {
                Finding.warning($0["code"].shown, $0["text"].shown, "countersign cluster status")
            }
            let none = Finding.warning("gateway", "none runs on this database", "countersign serve")
            return [.ok("database", text)] + warnings + (live == 0 ? [none] : []) + (try await apps())
        }
    }

    /// Converts an error that stops the checks to a finding, so that all output formats include it.
    private func looks(named name: String, _ body: () async throws -> [Finding]) async -> [Finding] {
        do {
            return try await body()
        } catch let error as CommandError {
            return [.failed(name, error.reason, error.hint, code: error.code)]
        } catch {
            return [.failed(name, "\(error)")]
        }
    }

    /// Checks the keys of each app and the delivery of its events.
    func apps() async throws -> [Finding] {
        let apps = try await admin.items("apps")
        guard !apps.isEmpty else {
            return [.warning("apps", "there is no app", "countersign app create shop")]
        }
        var found: [Finding] = []
        for app in apps { found += try await look(at: app) }
        return found
    }

    private func look(at app: JSONValue) async throws -> [Finding] {
        let id = app["id"].shown
        let name = "app \(id)"
        let found =
            try await (writeKeys(of: id) + keys(of: id, app)).map {
                Finding.failed(name, $0.detail, $0.remedy)
            } + receivers(of: id).map { Finding.warning(name, $0.detail, $0.remedy) }
        guard found.isEmpty else { return found }
        let enforcement = app["enforcement"].shown
        let count = app["keys"].integer ?? 0
        if enforcement != "disabled", count == 0 {
            return [
                .warning(
                    name, "enforcement is \(enforcement), and there is no key",
                    "countersign key add \(id) public.pem")
            ]
        }
        return [.ok(name, "\(enforcement), \(count) \(count == 1 ? "key" : "keys")")]
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
                        "the keys that it follows at \(url) cannot be fetched: \(TerminalText.safe(problem))",
                        "countersign key list \(app)"
                    ))
            } else if admin is LocalAdmin {
                found.append(
                    (
                        "it follows \(url); whether that can be fetched is known to the gateway",
                        "countersign doctor --server URL"
                    ))
            }
        }
        for hook in try await admin.items("apps", app, "webhooks") {
            let id = hook["id"].shown
            if hook["state"].text == "paused" {
                found.append(("the webhook \(id) is paused", "countersign webhook resume \(app) \(id)"))
            } else if let failures = hook["failures"].integer, failures > 0 {
                found.append(
                    (
                        "the webhook \(id) has not taken its last \(failures == 1 ? "attempt" : "\(failures) attempts")",
                        "countersign webhook deliveries \(app) \(id)"
                    ))
            }
        }
        for settings in try await admin.items("apps", app, "streams") {
            let streamName = settings["name"].shown
            let remedy = "countersign stream show \(app) \(streamName)"
            switch settings["state"].text {
            case "paused":
                found.append(
                    ("the stream \(streamName) is paused", "countersign stream resume \(app) \(streamName)"))
            case "failing": found.append(("the stream \(streamName) fails: \(settings["reason"].shown)", remedy))
            default: break
            }
            if settings["events_missed"] == .bool(true) {
                found.append(("the stream \(streamName) has missed events that were deleted", remedy))
            }
        }
        for consumer in try await consumers(of: app) where consumer["events_missed"] == .bool(true) {
            let name = consumer["name"].shown
            found.append(
                (
                    "the consumer \(name) has missed events that were deleted",
                    "countersign consumer seek \(app) \(name), or a longer retention"
                ))
        }
        return found
    }

    private func consumers(of app: String) async throws -> [JSONValue] {
        do {
            return try await admin.items("apps", app, "consumers")
        } catch let error as CommandError where error.code == .notFound {
            // No gateway has run on this data directory yet.
            return []
        }
    }
}
