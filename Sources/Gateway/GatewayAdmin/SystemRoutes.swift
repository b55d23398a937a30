internal import CountersignCore
internal import GatewayHTTP
internal import GatewayIngest
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

struct SystemRoutes: Sendable {
    let log: any EventLog
    let store: any EventStore
    let diskFloorBytes: Int
    /// Nil for a single gateway with its own data directory.
    var cluster: (any Cluster)?
    let startedMilliseconds: Int64
    let recorder: AnalyticsRecorder
    let registry: AppRegistry
    let tokenHealth: RefreshHealth

    let settings: [GatewaySetting]

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/overview", .viewer, "Show the state of the gateway", .json(Self.overview),
                answer: overview),
            AdminRoute(
                "GET", "/settings", .owner, "List the gateway's settings",
                .json(.page(of: Self.setting.shape))
            ) { call in
                call.answer(all: settings, Self.setting)
            },
        ]
    }

    // MARK: Shapes

    private static let overview = JSONShape.named(
        "Overview",
        .all([
            "version": .string, "database": .bool, "started_ms": .milliseconds,
            "now_ms": .milliseconds,
            "ready": .all([
                "ok": .bool, "checks": .list(check.shape),
            ]), "storage": .all(["events": .count, "file_bytes": .count, "free_bytes": .nullable(.count)]),
            "last_minute": .all(["accepted": .count, "rejected": .count, "events": .count]),
            "warnings": .list(
                .object([.must("code", .string), .must("text", .string), .may("app", .string)])),
        ]))

    private static let setting = AnswerShape<GatewaySetting>(
        .init("name", \.name), .init("value", \.value), .init("origin", \.origin), .init("help", \.help))

    private struct Check {
        let name: String
        let isOK: Bool
        let detail: String
    }

    private static let check = AnswerShape<Check>(
        .init("name", \.name), .init("ok", \.isOK), .init("detail", \.detail))

    // MARK: Answers

    private func overview(_ call: AdminCall) throws -> HTTPResponse {
        let load = store.load
        let problem = store.probe()
        let isRoomy = load.freeBytes.map { $0 >= diskFloorBytes } ?? true
        var checks = [
            Check(name: "storage", isOK: problem == nil, detail: problem?.summary ?? "written just now"),
            Check(name: "apps", isOK: registry.problem == nil, detail: registry.problem ?? "read"),
            Check(name: "sessions", isOK: tokenHealth.problem == nil, detail: tokenHealth.problem ?? "read"),
        ]
        if let free = load.freeBytes {
            let detail = "\(free >> 20) MiB free, the floor is \(diskFloorBytes >> 20) MiB"
            checks.insert(Check(name: "disk", isOK: isRoomy, detail: detail), at: 1)
        }
        var warnings: [JSONValue] = []
        func warn(_ code: String, _ text: String, app: String? = nil) {
            var members: JSONObject = ["code": .string(code), "text": .string(text)]
            members["app"] = app.map { .string($0) }
            warnings.append(.object(members))
        }
        for app in try call.directory.apps() {
            if app.enforcement != .disabled, app.keys.isEmpty {
                warn("no_key", "\(app.name) checks tokens but has no key: every token fails.", app: app.id)
            }
            if let returned = try call.directory.enforcementPlan(of: app.id).returned {
                warn(
                    "returned",
                    "\(app.name) returned to optional: the tokens of \(returned.rejectedPercent) % of users had stopped working.",
                    app: app.id)
            }
        }
        for deletion in try call.directory.deletions() where deletion.erasedMilliseconds == nil {
            warn("deleting", "\(deletion.appID) is being deleted: nothing is accepted for it any more.")
        }
        if !isRoomy { warn("disk", "The disk is almost full: nothing is stored.") }
        let shared = try cluster?.status()
        for warning in shared?.warnings ?? [] { warn(warning.code, warning.text) }
        let minute = shared?.lastMinute ?? recorder.traffic(until: call.nowMilliseconds)
        return call.answer([
            "version": .string(countersignVersion), "database": .bool(cluster != nil),
            "started_ms": .integer(startedMilliseconds),
            "now_ms": .integer(call.nowMilliseconds),
            "ready": [
                "ok": .bool(problem == nil && isRoomy && !registry.health.isStale && !tokenHealth.isStale),
                "checks": .array(checks.map(Self.check.json)),
            ],
            "storage": [
                "events": .integer(try log.count()),
                "file_bytes": .integer(Int64(load.fileBytes)), "free_bytes": load.freeBytes.jsonValue,
            ],
            "last_minute": [
                "accepted": .integer(Int64(minute.accepted)), "rejected": .integer(Int64(minute.rejected)),
                "events": .integer(Int64(minute.events)),
            ], "warnings": .array(warnings),
        ])
    }
}
