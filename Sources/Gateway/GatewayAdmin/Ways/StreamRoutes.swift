internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

struct StreamRoutes: Sendable {
    let log: any EventLog
    let consumers: any EventConsumers

    /// An earlier version called streams sinks. Its paths work for one release.
    var all: [AdminRoute] { routes("streams") + routes("sinks") }

    private func routes(_ noun: String) -> [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/\(noun)", .viewer,
                "List the streams that an app's events are published to", .list(Self.shape.shape)
            ) { call in
                let shown = try shown(call, try call.directory.streams.all(of: call[0]), of: call[0])
                return try call.page(
                    shown, at: { PageCursor($0.settings.createdMilliseconds, $0.settings.name) },
                    json: { Self.shape.json($0) })
            },
            // Requires owner, because a stream names an address to connect to and files to read.
            AdminRoute(
                "POST", "/apps/{app}/\(noun)", .owner, "Publish an app's events to a stream",
                body: .object(
                    [.must("name", .text(longest: 64))] + StreamSettings.settable + AdminCall.startMembers),
                .json(Self.shape.shape, status: 201), answer: create),
            AdminRoute(
                "GET", "/apps/{app}/\(noun)/{name}", .viewer, "Show a stream, its lag and its last error",
                .json(Self.shape.shape)
            ) { call in try answer(call) },
            WayRoutes.seek(
                "/apps/{app}/\(noun)/{name}",
                "Publish again from a given event, even if it is in the stream", Self.shape.shape, in: log
            ) { call, app, start in
                let after = try sequence(of: start, in: app)
                try call.directory.streams.seek(call[1], of: app, after: after, at: call.nowMilliseconds)
                let settings = try call.directory.streams.stream(call[1], of: app)
                try matching { _ = try consumers.seek(settings.consumer, to: .after(after)) }
                return try answer(call, settings)
            },
            AdminRoute.delete(
                "/apps/{app}/\(noun)/{name}", .operator, "Delete a stream; its messages stay on the server"
            ) { call in
                let settings = try call.directory.streams.stream(call[1], of: call[0])
                try call.directory.streams.delete(call[1], of: call[0])
                try matching { try consumers.delete(settings.consumer) }
            },
        ]
            + WayRoutes.pauses(
                "/apps/{app}/\(noun)/{name}",
                (
                    "Pause publishing to a stream",
                    "Resume publishing to a stream, and attempt the next event at once"
                ), Self.shape.shape, answer: { try answer($0) }
            ) { call, pause in
                try call.directory.streams.setPause(pause, of: call[1], of: call[0], at: call.nowMilliseconds)
            }
    }

    private struct Resource {
        let settings: StreamSettings
        let state: WayState
    }

    private static let shape = AnswerShape<Resource>(
        named: "Stream",
        first: StreamSettings.fields.map { $0.of(\.settings) } + WayState.fields.map { $0.of(\.state) },
        .init("stream_seq", \.state.progress?.receiverSequence),
        .time("mark_ms", \.state.progress?.deliveredMilliseconds))

    private func shown(_ call: AdminCall, _ streams: [StreamSettings], of appID: String) throws -> [Resource]
    {
        let mask = try call.userMask()
        let states = try WayState.all(.stream, of: appID, mask: mask, consumers, log)
        return streams.map { settings in
            Resource(
                settings: masked(settings, mask), state: states(settings.name, settings.pause != nil))
        }
    }

    private func masked(_ settings: StreamSettings, _ mask: UserMask) -> StreamSettings {
        var settings = settings
        settings.authorityFile = settings.authorityFile.map(mask.destination)
        settings.credentialsFile = settings.credentialsFile.map(mask.destination)
        settings.seedFile = settings.seedFile.map(mask.destination)
        return settings
    }

    private func answer(_ call: AdminCall) throws -> HTTPResponse {
        try answer(call, try call.directory.streams.stream(call[1], of: call[0]))
    }

    private func answer(_ call: AdminCall, _ settings: StreamSettings, status: Int = 200) throws
        -> HTTPResponse
    {
        guard let shown = try shown(call, [settings], of: settings.appID).first else { return call.noContent }
        return call.answer(Self.shape.json(shown), status: status)
    }

    private func sequence(of start: EventStart, in appID: String) throws -> Int64 {
        try ConsumerRoutes.answering { try consumers.sequence(of: start, in: appID) }
    }

    /// Changes the consumer of a stream. Ignores the error if a running gateway has already made the change.
    private func matching(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let failure as ConsumerFailure where [.exists, .notFound].contains(failure.code) {
            return
        }
    }

    private func create(_ call: AdminCall) throws -> HTTPResponse {
        let body = try call.body()
        let app = try call.app().id
        let start = try call.eventStart(of: app, in: log) ?? .start
        let made = try call.directory.streams.create(
            try body.text("name"), of: app, body.members, after: try sequence(of: start, in: app),
            at: call.nowMilliseconds)
        try matching {
            var progress = DeliveryProgress(committed: made.startSequence)
            progress.epoch = made.epoch
            try ConsumerRoutes.answering {
                try consumers.follow(made.consumer, holdDays: made.holdDays, from: progress)
            }
        }
        return try answer(call, made, status: 201)
    }
}
