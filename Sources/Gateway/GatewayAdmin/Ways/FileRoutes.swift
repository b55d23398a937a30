internal import CountersignCore
internal import GatewayHTTP
internal import GatewayModel
internal import GatewayStorage

/// The hourly event files of an app. The folder is a setting of the gateway.
struct FileRoutes: Sendable {
    let log: any EventLog
    let consumers: any EventConsumers

    var all: [AdminRoute] {
        [
            AdminRoute(
                "GET", "/apps/{app}/files", .viewer, "Show the state of an app's hourly event files",
                .json(Self.shape.shape), answer: answer)
        ]
            + WayRoutes.pauses(
                "/apps/{app}/files",
                ("Pause writing an app's hourly event files", "Resume writing an app's hourly event files"),
                Self.shape.shape, answer: answer
            ) { call, pause in
                try call.changing { call in
                    var settings = try call.directory.setting(FileSettings.self, of: call[0])
                    // A second pause does not replace the time and the operator of the first.
                    if pause == nil || settings.pause == nil { settings.pause = pause }
                    settings.revision += 1
                    try call.directory.set(settings, for: call[0])
                }
            }
    }

    private struct Resource {
        let settings: FileSettings
        let state: WayState
    }

    /// `enabled` is false if no gateway writes files.
    private static let shape = AnswerShape<Resource>(
        named: "EventFiles",
        first: FileSettings.fields.map { $0.of(\.settings) } + WayState.fields.map { $0.of(\.state) },
        .init("enabled", .bool) { $0.state.consumer != nil })

    private func answer(_ call: AdminCall) throws -> HTTPResponse {
        let settings = try call.directory.setting(FileSettings.self, of: call[0])
        let states = try WayState.all(.file, of: call[0], mask: try call.userMask(), consumers, log)
        let name = FileSettings.consumer(of: call[0]).name
        let state = states(name, settings.pause != nil)
        return call.answer(Self.shape.json(Resource(settings: settings, state: state)))
    }
}
