internal import CountersignCore

/// `countersign config …`.
enum ConfigCommand {
    static let commands = [print]

    private static let origin = Flag("origin", help: "show where each value comes from")

    private static let print = Command(
        "config print", summary: "Check and print the settings that `serve` would use",
        details: """
            Exits with 2 and the reason if `serve` would not accept them.
            Each setting comes from its flag, else its environment variable, else the file, else its default.
            Secrets are masked.
            """,
        flags: [origin, .json] + SettingReader.flags,
        examples: [
            "Where does each value come from?": "countersign config print --origin",
            "Before a restart": "countersign config print --config gateway.json",
        ]
    ) { invocation in
        let reader = SettingReader(invocation: invocation)
        let settings = try reader.all()
        _ = try reader.configuration(of: settings)
        if invocation.printsJSON {
            let members = settings.map { found -> JSONValue in
                var members: JSONObject = [
                    "name": .string(found.setting.name),
                    "value": found.value == nil ? .null : .string(found.shown),
                ]
                if invocation.isSet(origin) { members["origin"] = .string(found.origin.text) }
                return .object(members)
            }
            return try invocation.io.print(
                .array([["name": "data", "value": .string(try invocation.dataDirectory())]] + members))
        }
        let rows = settings.map { found in
            [found.setting.name, found.withUnit] + (invocation.isSet(origin) ? [found.origin.text] : [])
        }
        try invocation.io.print(TextTable(rows: [["data", try invocation.dataDirectory()]] + rows))
    }
}
