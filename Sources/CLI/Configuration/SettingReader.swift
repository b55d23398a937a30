internal import CountersignJSON
internal import Foundation
internal import GatewayModel

/// Reads settings. A value comes from the flag, else the environment, else the settings file, else the default.
struct SettingReader {
    enum Origin: Equatable {
        case flag(String)
        case environment(String)
        case file(String)
        case standard

        /// The text for `config print --origin`.
        var text: String {
            switch self {
            case .flag(let name): "flag --\(name)"
            case .environment(let name): "environment \(name)"
            case .file(let path): "file \(path)"
            case .standard: "default"
            }
        }
    }

    struct Found {
        let setting: Setting
        let value: String?
        let origin: Origin

        /// The value for display. Secrets are masked.
        var shown: String { setting.isSecret && value != nil ? "********" : value.map(setting.show) ?? "" }

        var withUnit: String { setting.isSecret ? shown : setting.flag.withUnit(shown) }
    }

    static let file = Flag(
        "config", .path("PATH"), environment: "COUNTERSIGN_CONFIG",
        help: "JSON file with settings, such as {\"port\": 8787}")

    /// The maximum size of the settings file and of a secret's file, in bytes.
    private static let longestFile = 1 << 20

    static let flags = [file] + SettingTable.all.map(\.flag) + [.data]

    let invocation: Invocation

    /// All settings, in the table's order. Throws `usage` for an unknown key or an invalid value, `notFound`
    /// for an unreadable file.
    func all() throws(CommandError) -> [Found] {
        try checkEnvironment()
        let path = try invocation.value(of: Self.file)
        let fromFile = try path.map { path throws(CommandError) in try values(ofFile: path) } ?? [:]
        var found: [Found] = []
        for setting in SettingTable.all {
            let (value, origin) = try value(of: setting, path, fromFile)
            if let value, let problem = setting.problem(with: value) {
                throw CommandError(.usage, "\(setting.name) (\(origin.text)): \(problem)")
            }
            found.append(Found(setting: setting, value: value.map(setting.plain), origin: origin))
        }
        return found
    }

    /// Throws `usage` for an unknown key or an invalid value, `notFound` for an unreadable file.
    func configuration() throws(CommandError) -> GatewayConfiguration {
        try configuration(of: try all())
    }

    /// The configuration from settings that were already read, because the file may be a pipe.
    func configuration(of found: [Found]) throws(CommandError) -> GatewayConfiguration {
        var configuration = GatewayConfiguration(dataDirectory: invocation.dataDirectory)
        configuration.settings = found.map {
            GatewaySetting(
                name: $0.setting.name, value: $0.value == nil ? nil : $0.shown, origin: $0.origin.text,
                help: $0.setting.help)
        }
        for found in found {
            guard let value = found.value else { continue }
            do throws(Setting.Problem) {
                try found.setting.apply(&configuration, value)
            } catch {
                throw CommandError(.usage, "\(found.setting.name) (\(found.origin.text)): \(error.text)")
            }
        }
        let certificates = configuration.tls?.all ?? []
        if certificates.contains(where: { $0.certificatePath.isEmpty || $0.keyPath.isEmpty }) {
            throw CommandError(
                .usage, "HTTPS needs both tls-certificate and tls-key, with the same number of files")
        }
        if configuration.database != nil {
            try checkDatabase(found)
            if configuration.database?.tokenKeyFile.isEmpty == true {
                configuration.database?.tokenKeyFile = DatabaseAddress.tokenKeyFile(
                    in: configuration.dataDirectory)
            }
        }
        return configuration
    }

    /// Throws `usage` for settings that are valid only with a data directory.
    private func checkDatabase(_ found: [Found]) throws(CommandError) {
        if let data = invocation.flagValues[Flag.data.name]?.last {
            throw CommandError(
                .usage, "--data \(data) contradicts the setting database", hint: "leave one of them out")
        }
        let ofFolder = ["disk-floor-bytes", "backup-hours", "backup-keep", "backup-folder"]
        for found in found where ofFolder.contains(found.setting.name) && found.origin != .standard {
            throw CommandError(
                .usage,
                "\(found.setting.name) (\(found.origin.text)) only works with a data directory, not with a database",
                hint: "leave it out, and use PostgreSQL's own tools for disk space and backups")
        }
    }

    private func value(
        of setting: Setting, _ path: String?, _ fromFile: [String: String]
    ) throws(CommandError) -> (String?, Origin) {
        let flag = setting.flag
        if let given = invocation.flagValues[flag.name]?.last {
            return (setting.isSecret ? try secret(given) : given, .flag(flag.name))
        }
        if let text = invocation.io.variable(setting.environment) {
            return (text, .environment(setting.environment))
        }
        if setting.isSecret, let file = invocation.io.variable(setting.fileEnvironment) {
            return (try secret(file), .environment(setting.fileEnvironment))
        }
        let file = Origin.file(path ?? "")
        if let text = fromFile[setting.name] { return (text, file) }
        if setting.isSecret, let secretPath = fromFile[setting.fileName] {
            return (try secret(secretPath), file)
        }
        return (setting.defaultValue, .standard)
    }

    var dataOrigin: Origin {
        if invocation.flagValues[Flag.data.name] != nil { return .flag(Flag.data.name) }
        return invocation.io.variable("COUNTERSIGN_DATA") == nil
            ? .standard : .environment("COUNTERSIGN_DATA")
    }

    private func secret(_ path: String) throws(CommandError) -> String {
        let bytes = try InputFile(path: path).bytes(longest: Self.longestFile)
        return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    /// Throws `usage` for a variable whose name resembles a setting's. Ignores other names with the prefix.
    private func checkEnvironment() throws(CommandError) {
        let known =
            SettingTable.all.flatMap {
                $0.isSecret ? [$0.environment, $0.fileEnvironment] : [$0.environment]
            }
            + [
                "COUNTERSIGN_CONFIG", "COUNTERSIGN_DATA", "COUNTERSIGN_SERVER", "COUNTERSIGN_TOKEN",
                "COUNTERSIGN_CA_FILE", "COUNTERSIGN_PROFILE",
            ]
        let own = invocation.io.environment.keys.filter {
            $0.hasPrefix("COUNTERSIGN_") && !known.contains($0)
        }
        for name in own.sorted() {
            let rest = String(name.dropFirst("COUNTERSIGN_".count))
            let meant = Suggestion.nearest(
                to: rest, among: known.map { String($0.dropFirst("COUNTERSIGN_".count)) })
            if let meant {
                throw CommandError(
                    .usage, "there is no setting \(name)", hint: "did you mean COUNTERSIGN_\(meant)?")
            }
        }
    }

    private func values(ofFile path: String) throws(CommandError) -> [String: String] {
        let bytes = try InputFile(path: path).bytes(longest: Self.longestFile)
        let known = SettingTable.all.flatMap { $0.isSecret ? [$0.name, $0.fileName] : [$0.name] }
        do {
            return try StrictJSONParser(maximumBytes: Self.longestFile, maximumDepth: 3).parse(bytes: bytes) {
                try Self.members($0, known: known, path: path)
            }
        } catch let error as CommandError {
            throw error
        } catch {
            throw CommandError(
                .usage, "\(path) \(Self.problem(error as? StrictJSONError))",
                hint: "write one object: {\"port\": 8787}")
        }
    }

    private static func problem(_ error: StrictJSONError?) -> String {
        switch error {
        case .empty: "is empty"
        case .notUTF8: "must be UTF-8 without a byte order mark"
        case .duplicateMember: "has a setting twice"
        case .tooLarge: "is larger than 1 MiB"
        case .numberOutOfRange: "has a number that does not fit in 64 bits"
        default: "is not JSON"
        }
    }

    private static func members(
        _ root: JSONNode, known: [String], path: String
    ) throws(CommandError) -> [String: String] {
        guard root.kind == .object else {
            throw CommandError(.usage, "\(path) is not a JSON object", hint: "write {\"port\": 8787}")
        }
        var values: [String: String] = [:]
        for (name, node) in root.members {
            let name = String(decoding: name, as: UTF8.self)
            guard known.contains(name) else {
                let hint = Suggestion.nearest(to: name, among: known).map { "did you mean \($0)?" }
                throw CommandError(
                    .usage, "\(path): there is no setting \(name)",
                    hint: hint ?? "`countersign config print` lists them")
            }
            guard let text = text(node) else {
                throw CommandError(
                    .usage, "\(path): \(name) needs a text, a whole number or a list of texts")
            }
            values[name] = text
        }
        return values
    }

    private static func text(_ node: JSONNode) -> String? {
        if node.kind == .array {
            let texts = node.elements.map(\.string)
            return texts.contains(nil) ? nil : texts.compactMap { $0 }.joined(separator: ",")
        }
        return node.string ?? node.int64.map { String($0) }
    }
}

extension Setting {
    /// Why `text` is not a valid value of this setting; nil if it is valid. Does not contain secrets.
    fileprivate func problem(with text: String) -> String? {
        isSecret ? nil : Flag(name, value, mayBeEmpty: true, help: help).problem(with: text)
    }

    /// The normalized value for ``apply``; see ``Flag/plain(_:)``.
    fileprivate func plain(_ text: String) -> String {
        isSecret ? text : Flag(name, value, help: help).plain(text)
    }
}
