@testable import CountersignCLI

/// The Markdown reference of all settings, stored as `docs/reference/settings.md`.
enum SettingReference {
    static var markdown: String {
        let head = """
            # Settings of the gateway

            <!-- Generated from the table of settings by a test, with COUNTERSIGN_ACCEPT=1. -->

            Each setting comes from its flag, else its environment variable, else the file that `--config` (or
            `COUNTERSIGN_CONFIG`) names, else its default. `countersign config print --origin` checks them and
            shows the values in effect and their origins. An unknown key is an error that suggests the closest
            one.

            The file is one JSON object with the settings' names as keys; a list may be an array of strings:

            ```json
            {"host": "0.0.0.0", "port": 443, "trusted-proxies": ["10.0.0.0/8"], "log-level": "warning"}
            ```

            A time (`DURATION`) is a number in the unit of the setting's name, or has its own unit: `30s`,
            `10m`, `2h`, `7d`. A size (`SIZE`) is a number of bytes, or has a unit: `500MB`, `1GiB`.

            Secrets are never arguments: flags and `_FILE` variables take a path, other variables the secret.

            | Setting | Flag | Variable | Default | What it does |
            | --- | --- | --- | --- | --- |

            """
        let data =
            "| data | `--data PATH` | `COUNTERSIGN_DATA` | the account's data folder | \(Flag.data.help) |\n"
        return head + data + SettingTable.all.map(row).joined()
    }

    private static func row(_ setting: Setting) -> String {
        let flag = setting.flag.usage.replacing("|", with: "\\|")
        let variable =
            setting.isSecret
            ? "`\(setting.fileEnvironment)` or `\(setting.environment)`" : "`\(setting.environment)`"
        let given = setting.defaultValue.map(setting.flag.withUnit) ?? ""
        let standard = given.isEmpty ? "none" : "`\(given)`"
        return "| \(setting.name) | `\(flag)` | \(variable) | \(standard) | \(setting.help) |\n"
    }
}
