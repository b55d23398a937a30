internal import Foundation
internal import GatewayStorage

extension Flag {
    /// The gateway's data directory, which all local commands share.
    static let data = Flag(
        "data", .path("PATH"), environment: "COUNTERSIGN_DATA",
        help:
            "folder that holds everything the gateway keeps; default: countersign-data in the account's data folder"
    )

    /// Data as JSON instead of text. A command that takes it takes ``output`` too.
    static let json = Flag("json", help: "print JSON; the same as -o json")

    /// The form of the data.
    static let output = Flag(
        "output", .choice(OutputFormat.allCases.map(\.rawValue)), letter: "o",
        help: "print a table for people, JSON, or one JSON object a line")
}

/// The form in which a command prints its data.
enum OutputFormat: String, CaseIterable {
    case table, json, jsonl
}

extension Invocation {
    /// The form that was asked for; `-o` says it, else `--json`, else it is a table.
    var output: OutputFormat {
        if let word = flagValues[Flag.output.name]?.last, let format = OutputFormat(rawValue: word) {
            return format
        }
        return isSet(.json) ? .json : .table
    }

    /// Whether the data is for programs.
    var printsJSON: Bool { output != .table }

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
