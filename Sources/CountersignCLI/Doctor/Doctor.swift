internal import Countersign
internal import CountersignCore
internal import CountersignGateway
internal import CountersignJOSE
internal import Foundation

/// Looks for what keeps a gateway from working, and says what to do.
struct Doctor: Sendable {
    /// What one look found.
    struct Finding: Sendable {
        enum Outcome: String, Sendable {
            case ok
            /// Works, but not for long, or not safely.
            case warning
            case failed
        }

        let name: String
        let outcome: Outcome
        let detail: String
        /// What to do; nil when there is nothing to do.
        var remedy: String?
    }

    let dataDirectory: String
    /// The gateway to ask; nil when none runs.
    let url: URL?
    let diskFloorBytes: Int

    /// Every look, in order.
    func findings() async -> [Finding] {
        var findings = [permissions, disk] + databases + keys
        findings += await gateway()
        return findings
    }

    private var permissions: Finding {
        let name = "data directory"
        guard let values = try? FileManager.default.attributesOfItem(atPath: dataDirectory) else {
            return Finding(
                name: name, outcome: .warning, detail: "\(dataDirectory) is not there yet",
                remedy: "countersign serve makes it; or give another with --data")
        }
        let mode = (values[.posixPermissions] as? NSNumber)?.intValue ?? 0
        guard mode & 0o077 == 0 else {
            return Finding(
                name: name, outcome: .failed, detail: "others can read or write \(dataDirectory)",
                remedy: "chmod 700 '\(dataDirectory)'")
        }
        guard access(dataDirectory, W_OK) == 0 else {
            return Finding(
                name: name, outcome: .failed, detail: "this account cannot write \(dataDirectory)",
                remedy: "run as the account that owns it, or change its owner")
        }
        return Finding(name: name, outcome: .ok, detail: dataDirectory)
    }

    private var disk: Finding {
        let values = try? FileManager.default.attributesOfFileSystem(forPath: dataDirectory)
        guard let free = (values?[.systemFreeSize] as? NSNumber)?.intValue else {
            return Finding(name: "disk", outcome: .warning, detail: "its free space is unknown")
        }
        let text = "\(free / 1_048_576) MiB free, nothing is stored below \(diskFloorBytes / 1_048_576) MiB"
        if free < diskFloorBytes {
            return Finding(
                name: "disk", outcome: .failed, detail: text,
                remedy: "make room, set a retention (countersign app retention), or lower disk-floor-bytes")
        }
        if free < 4 * diskFloorBytes {
            return Finding(
                name: "disk", outcome: .warning, detail: text,
                remedy: "make room soon, or set a retention with countersign app retention")
        }
        return Finding(name: "disk", outcome: .ok, detail: text)
    }

    private var databases: [Finding] {
        DatabaseCheck.all(in: dataDirectory).map { check in
            if let problem = check.problem {
                return Finding(
                    name: check.name, outcome: .failed, detail: problem,
                    remedy:
                        "stop the gateway and restore a backup into a new folder (countersign backup restore)"
                )
            }
            return Finding(name: check.name, outcome: .ok, detail: "SQLite's quick check finds no damage")
        }
    }

    private var keys: [Finding] {
        guard let apps = try? AppDirectory(dataDirectory: dataDirectory).apps(), !apps.isEmpty else {
            return [
                Finding(
                    name: "apps", outcome: .warning, detail: "there is no app",
                    remedy: "countersign app create shop")
            ]
        }
        return apps.map { app in
            let name = "app \(app.id)"
            let ring = KeyRing(entries: app.keys.map { KeyRing.Entry(id: $0.id, text: $0.text) })
            if let bad = ring.entries.first(where: { $0.problem != nil }) {
                return Finding(
                    name: name, outcome: .failed,
                    detail: "the key \(bad.id) cannot be used: \(bad.problem?.reason ?? "unknown")",
                    remedy: "countersign key delete \(app.id) \(bad.id)")
            }
            if app.enforcement != .disabled, app.keys.isEmpty {
                return Finding(
                    name: name, outcome: .warning,
                    detail: "enforcement is \(app.enforcement.rawValue), and there is no key",
                    remedy: "countersign key add \(app.id) public.pem")
            }
            return Finding(
                name: name, outcome: .ok,
                detail:
                    "\(app.enforcement.rawValue), \(app.keys.count) \(app.keys.count == 1 ? "key" : "keys")")
        }
    }

    private func gateway() async -> [Finding] {
        guard let url else {
            return [
                Finding(
                    name: "gateway", outcome: .warning, detail: "none runs on this data directory",
                    remedy: "countersign serve")
            ]
        }
        let transport = makeDefaultTransport()
        func get(_ path: String) async throws(HTTPTransportError) -> Countersign.HTTPResponse {
            try await transport.send(
                Countersign.HTTPRequest(
                    method: "GET", url: url.appendingPathComponent(path), headers: [], body: [], timeout: 5))
        }
        do throws(HTTPTransportError) {
            let before = Date()
            let live = try await get("livez")
            let milliseconds = Int(Date().timeIntervalSince(before) * 1000)
            var findings = [
                Finding(
                    name: "gateway", outcome: live.status == 200 ? .ok : .failed,
                    detail: "\(url.absoluteString) answers \(live.status) after \(milliseconds) ms")
            ]
            let ready = try await get("readyz")
            findings.append(
                ready.status == 200
                    ? Finding(name: "storage", outcome: .ok, detail: "a write has just succeeded")
                    : Finding(
                        name: "storage", outcome: .failed,
                        detail: String(decoding: ready.body.prefix(300), as: UTF8.self)
                            .trimmingCharacters(in: .whitespacesAndNewlines),
                        remedy: "curl '\(url.absoluteString)/readyz?verbose' lists the checks"))
            if let clock = clock(live, at: before) { findings.append(clock) }
            return findings
        } catch {
            return [
                Finding(
                    name: "gateway", outcome: .failed,
                    detail: "\(url.absoluteString) does not answer: \(error)",
                    remedy: url.scheme == "https"
                        ? "look at the certificate (tls-certificate, tls-key) and the gateway's log"
                        : "look at its log; is something else on its port?")
            ]
        }
    }

    /// The gateway's clock against this machine's: tokens are judged by it.
    private func clock(_ answer: Countersign.HTTPResponse, at now: Date) -> Finding? {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(secondsFromGMT: 0)
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        guard let text = answer.header("Date"), let theirs = format.date(from: text) else { return nil }
        let seconds = Int(theirs.timeIntervalSince(now).rounded())
        guard abs(seconds) > 5 else {
            return Finding(name: "clock", outcome: .ok, detail: "the gateway's and this machine's agree")
        }
        return Finding(
            name: "clock", outcome: abs(seconds) > 30 ? .failed : .warning,
            detail:
                "the gateway's clock is \(abs(seconds)) s \(seconds > 0 ? "ahead of" : "behind") this one",
            remedy: "synchronize both by NTP: tokens are judged by the gateway's")
    }
}
