internal import CountersignCore

/// `countersign config …`.
enum ConfigCommand {
    static let commands = [print, validate, reference]

    private static let origin = Flag("origin", help: "say where each value comes from")

    private static let print = Command(
        "config print", summary: "Print the settings that `serve` would run with",
        details: """
            Each setting comes from its flag, else its environment variable, else the file, else its default.
            Secrets are masked.
            """,
        flags: [origin, .json] + SettingReader.flags,
        examples: [
            .init("Where does each value come from?", "countersign config print --origin"),
            .init("What would this file do?", "countersign config print --config gateway.json"),
        ]
    ) { invocation in
        let reader = SettingReader(invocation: invocation)
        _ = try reader.configuration()
        let settings = try reader.all()
        if invocation.isSet(.json) {
            let members = settings.map { found -> JSONValue in
                var members: [String: JSONValue] = [
                    "name": .string(found.setting.name),
                    "value": found.value == nil ? .null : .string(found.shown),
                ]
                if invocation.isSet(origin) { members["origin"] = .string(found.origin.text) }
                return .object(members)
            }
            try invocation.io.print(.array(members))
            return .done
        }
        var table = TextTable()
        table.add("data", try invocation.dataDirectory())
        for found in settings {
            if invocation.isSet(origin) {
                table.add(found.setting.name, found.shown, found.origin.text)
            } else {
                table.add(found.setting.name, found.shown)
            }
        }
        for line in table.lines { try invocation.io.print(line) }
        return .done
    }

    private static let validate = Command(
        "config validate", summary: "Check the settings without running anything",
        details: "Ends with 0 when `serve` would take them, else with 2 and the reason.",
        flags: SettingReader.flags,
        examples: [.init("Before a restart", "countersign config validate --config gateway.json")]
    ) { invocation in
        _ = try SettingReader(invocation: invocation).configuration()
        invocation.io.say("The settings are valid.")
        return .done
    }

    private static let reference = Command(
        "config reference", summary: "Print the reference of all settings as Markdown",
        examples: [.init("Which settings are there?", "countersign config reference")]
    ) { invocation in
        try invocation.io.output(SettingReference.markdown)
        return .done
    }
}
