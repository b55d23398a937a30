/// Verdicts as they happen.
struct LiveRoutes: Sendable {
    let live: LiveFeed

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/live", .viewer, "Follow verdicts as they happen",
                query: [
                    .init("app", .text(longest: 64)), .init("code", SampleRoutes.code),
                    .init("user", .text(longest: 512)),
                ], .file(["text/event-stream"])
            ) { call in
                let filter = LiveEvents.Filter(
                    appID: call.query("app"), code: call.integer("code").map(Int.init),
                    user: call.query("user"))
                var response = HTTPResponse(
                    status: 200,
                    headers: [("Content-Type", "text/event-stream; charset=utf-8")] + AdminAPI.headers,
                    body: [])
                let last = call.request.lastEventID.flatMap { UInt64($0) }
                response.stream =
                    LiveEvents(
                        live, after: last, filter, isAllowed: call.isStillAllowed
                    ).stream
                return response
            }
        ]
    }
}
