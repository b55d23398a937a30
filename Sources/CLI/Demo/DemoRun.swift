internal import CountersignJOSE
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// A run of the demo, from recording to the result.
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
        if let destination { return try check(try await replay(to: destination)) }
        let dataDirectory = folder.appendingPathComponent("gateway").path
        let key = try SigningKey.generate(.es256)
        let (appID, writeKey) = try Self.makeApp(in: dataDirectory, key: key)
        let gateway = GatewayProcess(executable: executable, dataDirectory: dataDirectory) { [io] text in
            // Erases the progress line that the terminal may show.
            io.say(io.isInteractive ? "\r\u{1B}[K\(text)" : text)
        }
        do {
            let destination = Destination(endpoint: try await gateway.start(), writeKey: writeKey, key: key)
            let devices = try await replay(to: destination)
            let status = await gateway.stop()
            return try check(devices, gatewayStatus: status, dataDirectory: dataDirectory, appID: appID)
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

    /// Sends the events of all devices, and prints a table with their results.
    private func replay(to destination: Destination) async throws -> [DemoDevice] {
        let forgedKey = try SigningKey.generate(destination.key.algorithm)
        let devices = try plan.devices.map { device in
            try DemoDevice(
                plan: device, endpoint: destination.endpoint, writeKey: destination.writeKey,
                key: device.role == .forged ? forgedKey : destination.key,
                folder: folder.appendingPathComponent("devices"))
        }
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
        try io.print(Self.table(devices))
        return devices
    }

    private static func table(_ devices: [DemoDevice]) -> TextTable {
        var table = TextTable(rightAligned: [1, 2, 3, 4])
        table.add("DEVICE", "RECORDED", "DELIVERED", "REFRESHED", "QUEUED", "REJECTED", "NOTE")
        for device in devices {
            let recorded = device.recorded + device.identified.values.reduce(0, +)
            let tally = device.network.tally
            let rejections = tally.rejections.sorted { $0.key < $1.key }.map { "\($0.key) x\($0.value)" }
            var notes: [String] = []
            switch device.plan.role {
            case .steady: break
            case .losesNetwork: notes.append("had no network for \(tally.cut) requests")
            case .forged: notes.append("its tokens are forged: signed with another key")
            }
            if tally.duplicates > 0 { notes.append("\(tally.duplicates) sent twice, stored once") }
            table.add(
                device.plan.name, String(recorded), String(tally.delivered), String(device.refreshed),
                String(device.queued), rejections.isEmpty ? "-" : rejections.joined(separator: ", "),
                notes.joined(separator: "; "))
        }
        return table
    }

    /// Checks the result by the responses that the devices received.
    func check(_ devices: [DemoDevice]) throws -> Bool {
        let left = devices.filter { $0.plan.role != .forged }.reduce(0) { $0 + $1.queued }
        let forged = devices.filter { $0.plan.role == .forged }.reduce(0) { $0 + $1.network.tally.delivered }
        return try print([
            ("\(left) events of the devices with valid tokens are still in their queues", left == 0),
            ("\(forged) events of the device with forged tokens were accepted", forged == 0),
        ])
    }

    /// Prints each check. Returns true if all passed.
    private func print(_ checks: [(text: String, isRight: Bool)]) throws -> Bool {
        try io.print("")
        for (text, isRight) in checks { try io.print("\(isRight ? "ok    " : "WRONG ") \(text)") }
        return checks.allSatisfy(\.isRight)
    }

    /// Checks the result by the gateway's database.
    private func check(
        _ devices: [DemoDevice], gatewayStatus: Int32?, dataDirectory: String, appID: String
    ) throws -> Bool {
        let honest = devices.filter { $0.plan.role != .forged }
        let identified = honest.reduce(into: [String: Int]()) { sum, device in
            sum.merge(device.identified, uniquingKeysWith: +)
        }
        let check = DemoCheck(
            stored: try DemoCheck.read(database: dataDirectory + "/events.sqlite", appID: appID),
            rows: plan.honestRows, identified: identified)
        return try print([
            (
                "\(check.exact) of \(plan.honestRows.count) events are in the database exactly once "
                    + "(missing \(check.missing), repeated \(check.repeated), unknown \(check.unknown)), "
                    + "and \(identified.values.reduce(0, +)) identify events",
                check.exact == plan.honestRows.count && check.missing + check.repeated + check.unknown == 0
            ),
            (
                "\(check.forged) events of the device with forged tokens are in the database",
                check.forged == 0
            ),
            (
                "the gateway rejected an expired token of each device with valid tokens, and the device got a new one",
                honest.allSatisfy {
                    $0.network.tally.rejections.keys.contains { $0.hasPrefix("22 ") } && $0.refreshed > 0
                }
            ),
            ("the gateway stopped cleanly", gatewayStatus == 0),
        ])
    }
}
