internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayObservability
internal import GatewayStorage

struct LiveRoutes: Sendable {
    let live: LiveFeed

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/live", .viewer, "Follow verdicts as they happen",
                query: [
                    .may("app", .text(longest: 64)), .may("code", SampleRoutes.code),
                    .may("user", .text(longest: 512)), .may("enforcement", .choice(["only"])),
                ], .file(["text/event-stream"])
            ) { call in
                // Following an unknown app would wait for ever.
                if let app = call.query("app") { _ = try call.directory.app(id: app) }
                var filter = LiveEvents.Filter(
                    appID: call.query("app"), code: call.integer("code").map(Int.init),
                    user: call.query("user"))
                if let user = filter.user {
                    if Pseudonyms.isPseudonym(user) {
                        filter.pseudonymMask = UserMask(key: try call.directory.pseudonymKey())
                    } else {
                        try call.checkSeesContent("a user id, other than a pseudonym,")
                    }
                }
                let mask = try call.userMask()
                var response = HTTPResponse(
                    status: 200,
                    headers: [("Content-Type", "text/event-stream; charset=utf-8")] + AdminAnswer.headers,
                    body: [])
                let last = call.request.lastEventID.flatMap { UInt64($0) }
                var enforcement: (@Sendable () -> JSONValue?)?
                if call.query("enforcement") != nil {
                    guard let app = filter.appID else { throw AdminProblem.invalid("app", "is required") }
                    enforcement = { [directory = call.directory] in
                        try? directory.enforcementPlan(of: app).json
                    }
                }
                let isAllowed: @Sendable () -> Bool = {
                    [isStillAllowed = call.isStillAllowed, directory = call.directory, app = filter.appID] in
                    isStillAllowed() && app.map { Self.exists($0, in: directory) } != false
                }
                response.stream =
                    LiveEvents(
                        enforcement == nil ? live : nil, after: last, filter, mask,
                        isAllowed: isAllowed, enforcement: enforcement
                    ).stream
                return response
            }
        ]
    }
    /// A read error does not mean that the app was deleted.
    private static func exists(_ app: String, in directory: AppDirectory) -> Bool {
        do throws(GatewayError) {
            _ = try directory.app(id: app)
            return true
        } catch {
            return error.code != .notFound
        }
    }
}
