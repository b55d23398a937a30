internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// Routes that webhooks, streams, hourly files and consumers have in common. Each of them is called a way.
enum WayRoutes {
    typealias Answer = @Sendable (AdminCall) throws -> HTTPResponse

    /// Routes that pause and resume the way at `path`. `set` stores the pause; nil resumes.
    static func pauses(
        _ path: String, _ summaries: (pause: String, resume: String), _ shape: JSONShape,
        answer: @escaping Answer, set: @escaping @Sendable (AdminCall, WayPause?) throws -> Void
    ) -> [AdminRoute] {
        [("pause", summaries.pause, true), ("resume", summaries.resume, false)].map {
            action, summary, isPause in
            AdminRoute("POST", "\(path)/\(action)", .operator, summary, .json(shape)) { call in
                let pause = WayPause(by: call.identity.name, atMilliseconds: call.nowMilliseconds)
                try set(call, isPause ? pause : nil)
                return try answer(call)
            }
        }
    }

    /// A route that moves the way at `path` to a start position, and delivers again from there.
    static func seek(
        _ path: String, _ summary: String, _ shape: JSONShape, in log: any EventLog,
        answer: @escaping @Sendable (AdminCall, _ app: String, EventStart) throws -> HTTPResponse
    ) -> AdminRoute {
        AdminRoute(
            "POST", path + "/seek", .operator, summary, body: .object(AdminCall.startMembers), .json(shape)
        ) { call in
            let app = try call.app().id
            guard let start = try call.eventStart(of: app, in: log) else {
                throw AdminProblem.invalid("from", "is missing; give it, time_ms or position")
            }
            return try answer(call, app, start)
        }
    }
}
