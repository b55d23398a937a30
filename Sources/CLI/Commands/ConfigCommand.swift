internal import CountersignCore

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
        let (data, dataOrigin) = (invocation.dataDirectory, reader.dataOrigin.text)
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
            var first: JSONObject = ["name": "data", "value": .string(data)]
            if invocation.isSet(origin) { first["origin"] = .string(dataOrigin) }
            return try invocation.io.print(.array([.object(first)] + members))
        }
        let rows =
            [["data", data, dataOrigin]] + settings.map { [$0.setting.name, $0.withUnit, $0.origin.text] }
        try invocation.io.print(TextTable(rows: invocation.isSet(origin) ? rows : rows.map { $0.dropLast() }))
    }
}
