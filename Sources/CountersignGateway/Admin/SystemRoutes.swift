internal import CountersignCore
internal import Foundation

/// How the gateway does, its backups and its sessions' ends.
struct SystemRoutes: Sendable {
    let dataDirectory: String
    let backupFolder: String
    let store: any EventStore
    let diskFloorBytes: Int
    let startedMilliseconds: Int64
    let recorder: AnalyticsRecorder
    let registry: AppRegistry

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/overview", .viewer, "Say how the gateway does", answer: overview),
            AdminRoute("GET", "/backups", .owner, "List backups") { call in
                call.list(Backup.all(in: backupFolder).map(Self.json))
            },
            AdminRoute("POST", "/backups", .owner, "Make a backup now", hashesPassword: true) { call in
                let backup = try Backup.create(of: dataDirectory, in: backupFolder)
                try call.directory.note("backup.create", backup.name)
                return call.answer(Self.json(backup), status: 201)
            },
            AdminRoute("GET", "/apps/{app}/sessions", .viewer, "List an app's sessions") { call in
                let app = try call.app()
                let sessions = try SessionDirectory(dataDirectory: dataDirectory).sessions(
                    of: app.id, subject: call.query("user"), limit: try call.limit())
                return call.list(sessions.map(Self.json))
            },
            AdminRoute("DELETE", "/apps/{app}/sessions/{id}", .operator, "End a session") { call in
                let app = try call.app()
                let directory = try SessionDirectory(dataDirectory: dataDirectory)
                guard try directory.sessions(of: app.id, limit: 100_000).contains(where: { $0.id == call[1] })
                else {
                    throw AdminProblem(404, "not_found", "the app has no such session")
                }
                try directory.revoke(id: call[1])
                try call.directory.note("session.revoke", call[1], app: app.id)
                return call.noContent
            },
        ]
    }

    private func overview(_ call: AdminCall) throws -> HTTPResponse {
        let load = store.load
        let failure = Lock<StoreFailure?>(nil)
        let done = DispatchSemaphore(value: 0)
        store.probe { result in
            if case .failure(let found) = result { failure.withLock { $0 = found } }
            done.signal()
        }
        done.wait()
        let problem = failure.withLock { $0 }
        let isRoomy = load.freeBytes >= diskFloorBytes
        let checks: [(String, Bool, String)] = [
            ("storage", problem == nil, problem?.summary ?? "written just now"),
            ("disk", isRoomy, "\(load.freeBytes) bytes free, the floor is \(diskFloorBytes)"),
            ("apps", registry.problem == nil, registry.problem ?? "read"),
        ]
        var warnings: [JSONValue] = []
        for app in try call.directory.apps() {
            if app.enforcement != .disabled, app.keys.isEmpty {
                warnings.append([
                    "code": "no_key", "app": .string(app.id),
                    "text": .string("\(app.name) judges tokens and has no key: every token fails."),
                ])
            }
            if let returned = try call.directory.enforcementPlan(of: app.id).returned {
                warnings.append([
                    "code": "returned", "app": .string(app.id),
                    "text": .string(
                        "\(app.name) returned to optional by itself: \(returned.rejectedPercent) % were refused."
                    ),
                ])
            }
        }
        if !isRoomy {
            warnings.append(["code": "disk", "text": "The disk is almost full: nothing is stored."])
        }
        let minute = recorder.recent(since: call.nowMilliseconds - 60_000)
        return call.answer([
            "version": .string(countersignVersion), "started_ms": .integer(startedMilliseconds),
            "now_ms": .integer(call.nowMilliseconds),
            "ready": [
                "ok": .bool(problem == nil && isRoomy),
                "checks": .array(
                    checks.map { ["name": .string($0.0), "ok": .bool($0.1), "detail": .string($0.2)] }),
            ],
            "storage": [
                "events": .integer(try AppUsage.events(in: dataDirectory)),
                "file_bytes": .integer(Int64(load.fileBytes)), "free_bytes": .integer(Int64(load.freeBytes)),
            ],
            "last_minute": [
                "accepted": .integer(Int64(minute.accepted)), "rejected": .integer(Int64(minute.rejected)),
                "events": .integer(Int64(minute.events)),
            ], "warnings": .array(warnings),
        ])
    }

    private static func json(_ backup: Backup) -> JSONValue {
        [
            "name": .string(backup.name), "created_ms": .integer(backup.createdMilliseconds),
            "bytes": .integer(Int64(backup.bytes)), "events": .integer(Int64(backup.events)),
        ]
    }

    private static func json(_ session: Session) -> JSONValue {
        [
            "id": .string(session.id), "user": .string(session.subject),
            "client": session.clientID.map { .string($0) } ?? .null,
            "created_ms": .integer(session.createdMilliseconds),
            "last_used_ms": .integer(session.usedMilliseconds),
            "expires_ms": .integer(session.expiresMilliseconds),
            "revoked_ms": session.revokedMilliseconds.map { .integer($0) } ?? .null,
            "reason": session.revocation.map { .string($0.rawValue) } ?? .null,
        ]
    }
}
