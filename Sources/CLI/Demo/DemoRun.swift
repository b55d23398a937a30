internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// A run of the demo, from an empty folder to the result.
struct DemoRun: Sendable {
    /// The seconds over which devices record, long enough for tokens to expire in transit.
    static let recordingSeconds = 8.0
    /// The time limit in seconds for delivering the remaining events.
    static let drainSeconds = 40.0

    struct Destination: Sendable {
        let endpoint: URL
        let writeKey: String
        let key: SigningKey
    }

    let plan: DemoPlan
    /// The folder for the gateway's data and the devices' queues.
    let folder: URL
    let executable: String
    /// The gateway to send to; nil starts one.
    let destination: Destination?
    let io: CommandIO

    /// Runs the demo and prints its table. Returns true if the result is as expected.
    func run() async throws -> Bool {
        if let destination {
            let devices = try makeDevices(
                endpoint: destination.endpoint, writeKey: destination.writeKey, key: destination.key)
            try await replay(devices)
            return try report(devices)
        }
        let dataDirectory = folder.appendingPathComponent("gateway").path
        let key = try SigningKey.generate(.es256)
        let (appID, writeKey) = try Self.makeApp(in: dataDirectory, key: key)
        let gateway = GatewayProcess(executable: executable, dataDirectory: dataDirectory) { [io] text in
            // Erases a progress line at this position.
            io.say(io.isInteractive ? "\r\u{1B}[K\(text)" : text)
        }
        do {
            let endpoint = try await gateway.start()
            let devices = try makeDevices(endpoint: endpoint, writeKey: writeKey, key: key)
            try await replay(devices)
            let status = await gateway.stop()
            return try report(devices, gatewayStatus: status, dataDirectory: dataDirectory, appID: appID)
        } catch {
            _ = await gateway.stop()
            throw error
        }
    }

    /// Creates an app for this run. Its policy has no leeway, so that tokens expire within seconds.
    private static func makeApp(
        in dataDirectory: String, key: SigningKey
    ) throws -> (id: String, writeKey: String) {
        let directory = try AppDirectory(dataDirectory: dataDirectory)
        let taken = Set(try directory.apps().map(\.id))
        let id =
            taken.contains("demo") ? (2...).lazy.map { "demo-\($0)" }.first { !taken.contains($0) } : "demo"
        let (app, writeKey) = try directory.createApp(id: id ?? "demo", name: "Demo")
        _ = try directory.addKey(key.publicKey.pem, description: "made for this run", to: app.id)
        var policy = app.policy
        policy.leeway = 0
        policy.algorithms = [key.algorithm]
        try directory.setPolicy(policy, for: app.id)
        try directory.setEnforcement(.required, for: app.id)
        return (app.id, writeKey)
    }

    private func makeDevices(endpoint: URL, writeKey: String, key: SigningKey) throws -> [DemoDevice] {
        let forgedKey = try SigningKey.generate(key.algorithm)
        return try plan.devices.map { device in
            try DemoDevice(
                plan: device, endpoint: endpoint, writeKey: writeKey,
                key: device.role == .forged ? forgedKey : key,
                folder: folder.appendingPathComponent("devices"))
        }
    }

    private func replay(_ devices: [DemoDevice]) async throws {
        let progress = Task { await DemoProgress(devices: devices, io: io).show() }
        defer { progress.cancel() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
                group.addTask {
                    try await device.record(seconds: Self.recordingSeconds)
                    try await device.drain(until: Date(timeIntervalSinceNow: Self.drainSeconds))
                    await device.close()
                }
            }
            try await group.waitForAll()
        }
        progress.cancel()
        await progress.value
    }

    /// Checks the result by the responses that the devices received.
    private func report(_ devices: [DemoDevice]) throws -> Bool {
        let report = DemoReport(devices: devices.map(\.report))
        for line in report.lines { try io.print(line) }
        let left = report.devices.filter { $0.plan.role != .forged }.reduce(0) { $0 + $1.queued }
        let forged = report.devices.filter { $0.plan.role == .forged }.reduce(0) { $0 + $1.tally.delivered }
        return try say([
            ("\(left) events of the honest devices are still in their queues", left == 0),
            ("\(forged) events of the device with forged tokens were accepted", forged == 0),
        ])
    }

    /// Prints each check. Returns true if all passed.
    private func say(_ verdicts: [(text: String, isRight: Bool)]) throws -> Bool {
        try io.print("")
        for (text, isRight) in verdicts { try io.print("\(isRight ? "ok    " : "WRONG ") \(text)") }
        return verdicts.allSatisfy(\.isRight)
    }

    private func report(
        _ devices: [DemoDevice], gatewayStatus: Int32?, dataDirectory: String, appID: String
    ) throws -> Bool {
        let report = DemoReport(devices: devices.map(\.report))
        for line in report.lines { try io.print(line) }
        let honest = report.devices.filter { $0.plan.role != .forged }
        let identified = honest.reduce(into: [String: Int]()) { sum, device in
            sum.merge(device.identified, uniquingKeysWith: +)
        }
        let check = DemoCheck(
            stored: try DemoCheck.read(database: dataDirectory + "/events.sqlite", appID: appID),
            rows: plan.honestRows, identified: identified)
        return try say([
            (
                "\(check.exact) of \(plan.honestRows.count) events are in the database exactly once, "
                    + "beside \(identified.values.reduce(0, +)) identify events "
                    + "(missing \(check.missing), repeated \(check.repeated), unknown \(check.unknown))",
                check.exact == plan.honestRows.count && check.missing + check.repeated + check.unknown == 0
            ),
            (
                "\(check.forged) events of the device with forged tokens are in the database",
                check.forged == 0
            ),
            (
                "the gateway rejected an expired token of each honest device, which got a fresh one",
                honest.allSatisfy {
                    $0.tally.rejections.keys.contains { $0.hasPrefix("22 ") } && $0.refreshed > 0
                }
            ),
            ("the gateway stopped cleanly", gatewayStatus == 0),
        ])
    }
}
