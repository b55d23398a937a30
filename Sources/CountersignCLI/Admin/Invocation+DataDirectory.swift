internal import Foundation
internal import GatewayStorage

extension Flag {
    /// The gateway's data directory, which all local commands share.
    static let data = Flag(
        "data", .path("PATH"), environment: "COUNTERSIGN_DATA",
        help: "folder that holds everything the gateway keeps")

    /// Data as JSON instead of text.
    static let json = Flag("json", help: "print JSON")
}

extension Invocation {
    /// The absolute path of the data directory: `--data`, else `COUNTERSIGN_DATA`, else `countersign-data` in the
    /// place where the platform keeps an account's application data.
    func dataDirectory() throws(CommandError) -> String {
        if let given = try value(of: .data) {
            return URL(fileURLWithPath: given).standardizedFileURL.path
        }
        #if os(macOS)
            let place = (io.environment["HOME"] ?? ".") + "/Library/Application Support"
        #else
            let home = (io.environment["HOME"] ?? ".") + "/.local/share"
            let place = io.environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home
        #endif
        return URL(fileURLWithPath: place + "/countersign-data").standardizedFileURL.path
    }

    /// The apps of the data directory.
    func appDirectory() throws -> AppDirectory {
        try AppDirectory(dataDirectory: try dataDirectory())
    }
}
