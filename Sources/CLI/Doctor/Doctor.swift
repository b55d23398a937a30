internal import CountersignTransport
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

struct Doctor: Sendable {
    let configuration: GatewayConfiguration
    /// The running gateway; nil without one.
    let url: URL?
    var transport: any HTTPTransport = makeDefaultTransport()
    /// The `errno` of accessing a file in this mode (`R_OK` and others); 0 on success.
    var obstacle: @Sendable (_ path: String, _ mode: Int32) -> Int32 = { access($0, $1) == 0 ? 0 : errno }

    /// The owner of a file; nil if it cannot be determined.
    var ownerID: @Sendable (_ path: String) -> uid_t? = { path in
        var status = stat()
        return stat(path, &status) == 0 ? status.st_uid : nil
    }

    var now: @Sendable () -> Date = { Date() }
    /// Why the settings are invalid. ``configuration`` then has the defaults.
    var settingsProblem: CommandError?

    var dataDirectory: String { configuration.dataDirectory }
    private var diskFloorBytes: Int { configuration.diskFloorBytes }

    func findings() async -> [Finding] {
        if let missing { return [missing] + (url == nil ? [] : await gateway()) }
        var findings = [folder, disk]
        if findings[0].outcome != .failed {
            let closed = closedDatabases
            findings += await databases(closed: closed) + files + apps(closed: closed)
        }
        findings += settings + certificate
        // Only an accessible folder shows whether a gateway runs.
        if url != nil || obstacle(dataDirectory, R_OK | W_OK | X_OK) == 0 { findings += await gateway() }
        return findings
    }

    private var settings: [Finding] {
        guard let settingsProblem else { return [] }
        return [
            .failed(
                "settings", settingsProblem.reason,
                settingsProblem.hint ?? "countersign config print --origin shows where each comes from")
        ]
    }

    private var disk: Finding {
        let values = try? FileManager.default.attributesOfFileSystem(forPath: dataDirectory)
        guard let free = (values?[.systemFreeSize] as? NSNumber)?.intValue else {
            return .warning("disk", "its free space is unknown")
        }
        let text = "\(free / 1_048_576) MiB free, nothing is stored below \(diskFloorBytes / 1_048_576) MiB"
        if free < diskFloorBytes {
            return .failed(
                "disk", text,
                "make room, set a retention (countersign app retention), or lower disk-floor-bytes")
        }
        if free < 4 * diskFloorBytes {
            return .warning("disk", text, "make room soon, or set a retention with countersign app retention")
        }
        return .ok("disk", text)
    }

    private func databases(closed: [Finding]) -> [Finding] {
        let checks = DatabaseCheck.all(in: dataDirectory).filter { check in
            !closed.contains { $0.name == check.name }
        }
        return closed
            + checks.map { check in
                guard let problem = check.problem else {
                    return .ok(check.name, "SQLite's quick check finds no damage")
                }
                return .failed(
                    check.name, problem,
                    "stop the gateway and restore a backup into a new folder (countersign backup restore)")
            }
    }

    private func apps(closed: [Finding]) async -> [Finding] {
        let control = "control.sqlite"
        guard !closed.contains(where: { $0.name == control }) else { return [] }
        let isThere = FileManager.default.fileExists(atPath: dataDirectory + "/" + control)
        guard isThere else { return [.warning("apps", "there is no app", "countersign app create shop")] }
        do {
            return try await AdminDoctor(admin: LocalAdmin(dataDirectory: dataDirectory)).apps()
        } catch {
            return [.failed("apps", (error as? CommandError)?.reason ?? "\(error)")]
        }
    }

    private func gateway() async -> [Finding] {
        guard let url else {
            let lock = dataDirectory + "/gateway.lock"
            let error = obstacle(lock, R_OK)
            if error != 0, error != ENOENT {
                return [
                    closed(lock, name: "gateway", to: "read", error, "; so whether a gateway runs is unknown")
                ]
            }
            return [.warning("gateway", "no gateway runs on this data directory", "countersign serve")]
                + ports
        }
        return await SelfCheck(url: url, transport: transport, now: now).health()
    }
}
