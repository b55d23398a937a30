internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct BackupRoutes: Sendable {
    let storage: any Storage
    /// Nil with a database server, which has its own backup tools.
    let place: String?
    let diskFloorBytes: Int

    var all: [AdminRoute] {
        [
            AdminRoute("GET", "/backups", .owner, "List backups, newest first", .list(Self.backup.shape)) {
                call in
                try call.page(
                    Backup.all(in: try folder()), isDescending: true,
                    at: { PageCursor($0.createdMilliseconds, $0.name) }, json: Self.backup.json)
            },
            AdminRoute(
                "POST", "/backups", .owner, "Create a backup now", queueClass: .backup,
                .json(Self.backup.shape, status: 201)
            ) { call in
                let backup = try storage.backUp(in: try folder(), floorBytes: diskFloorBytes)
                try call.directory.auditLog.note("backup.create", backup.name)
                return call.answer(Self.backup.json(backup), status: 201)
            },
            AdminRoute(
                "POST", "/backups/{name}/verify", .owner, "Check that a backup is intact",
                queueClass: .backup,
                .json(Self.backup.shape.with([.must("ok", .bool), .must("problem", .nullable(.string))])),
                answer: verify),
        ]
    }

    private static let backup = AnswerShape<Backup>(
        named: "Backup", .init("name", \.name), .time("created_ms", \.createdMilliseconds),
        .init("bytes", \.bytes), .init("events", \.events))

    private func folder() throws(GatewayError) -> String {
        guard let place else {
            throw GatewayError(
                .invalid,
                "everything is in a database: back it up with PostgreSQL's own tools, such as pg_basebackup")
        }
        return place
    }

    private func verify(_ call: AdminCall) throws -> HTTPResponse {
        // Only a listed name is used, to prevent path traversal.
        guard let backup = Backup.all(in: try folder()).first(where: { $0.name == call[0] }) else {
            throw AdminProblem.notFound("there is no such backup")
        }
        var problem: String?
        do throws(GatewayError) {
            _ = try Backup.verify(backup.path)
        } catch {
            guard error.code == .invalid else { throw error }
            problem = error.reason
        }
        return call.answer(
            Self.backup.json(
                backup, with: ["ok": .bool(problem == nil), "problem": problem.jsonValue]))
    }
}
