internal import CountersignCore
internal import CountersignGateway
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

enum DashboardCommand {
    static let command = Command(
        "dashboard", summary: "Open the dashboard in the browser",
        details: """
            Prints the address of the dashboard. At a terminal with a display it also opens the address. While a data
            directory or database has no dashboard user, the address is the link that sets the first password. The link works
            once, within 30 minutes.
            """,
        flags: Flag.target, examples: ["On this machine": "countersign dashboard"]
    ) { invocation in
        let address = try address(invocation)
        try invocation.io.print(address)
        guard invocation.io.isOutputWatched, let opener = opener(invocation.io.environment) else { return }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: opener)
        process.arguments = [address]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    private static func address(_ invocation: Invocation) throws -> String {
        if let remote = try invocation.remoteAdmin() { return remote.server.url + "/admin/" }
        let location = try invocation.locationWithData()
        let page = try location.requireRunningGateway().dashboardURL + "/admin/"
        let admins = try location.open().openControl(as: .account).admins
        guard try admins.users().isEmpty else { return page }
        return "\(page)#/setup/\(try admins.makeSetupToken(at: Milliseconds(Date()).count))"
    }

    /// The program that opens a URL on the desktop; nil without a display or `xdg-open`.
    private static func opener(_ environment: [String: String]) -> String? {
        #if os(macOS)
            return "/usr/bin/open"
        #else
            let displays = ["DISPLAY", "WAYLAND_DISPLAY"].filter { environment[$0]?.isEmpty == false }
            guard !displays.isEmpty else { return nil }
            let folders = (environment["PATH"] ?? "").split(separator: ":")
            return folders.map { "\($0)/xdg-open" }.first(where: FileManager.default.isExecutableFile)
        #endif
    }
}
