internal import CountersignCore

enum FilesCommand {
    static let commands = [show, pause, resume]

    private static let shared = WayCommands(
        noun: "files", path: { _ in ["files"] }, positionals: [.app], example: "shop")

    private static let show = shared.show(
        "Show the progress of an app's hourly event files",
        details: """
            Files are written by a gateway that was started with --event-files. The folder is a setting of the gateway,
            so this command neither creates nor deletes files. There is no replay: each event is in one file. To write all events
            again, move the app's folder away.
            """,
        "Are the files up to date?", ["WRITTEN": "enabled"])
    private static let pause = shared.pause(
        "Pause writing an app's hourly event files", "Before the folder moves",
        "Paused. Hours that end meanwhile are written when it is resumed, unless retention has deleted their events."
    )
    private static let resume = shared.resume(
        "Resume writing an app's hourly event files", "After the folder has moved",
        "Resumed. Within seconds, a running gateway writes the hours that are over.")
}
