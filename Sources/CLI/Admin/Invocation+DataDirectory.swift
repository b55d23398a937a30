internal import CountersignGateway
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

extension Flag {
    static let data = Flag(
        "data", .path("PATH"), environment: "COUNTERSIGN_DATA",
        help:
            "folder for everything the gateway stores; default: countersign-data in the account's data folder"
    )

    /// A database that several gateways share, used instead of the data directory.
    static let database = SettingTable.database.flag
    static let databasePasswordFile = SettingTable.databasePasswordFile.flag
    static let tokenKeyFile = SettingTable.tokenKeyFile.flag

    /// The flags that select a gateway's data. The other flags of ``local`` only say how to open a database.
    static let location = [data, database]

    static let local = location + [databasePasswordFile, tokenKeyFile]

    /// JSON output. A command with this flag also has ``output``.
    static let json = Flag(
        "json", help: "print JSON, like -o json; long lists have one object per line")

    static let output = Flag(
        "output", .choice(OutputFormat.allCases.map(\.rawValue)), letter: "o",
        help: "print a table, JSON, or one JSON object per line")
}

enum OutputFormat: String, CaseIterable {
    case table, json, jsonl
}

extension Invocation {
    /// The selected format: `-o`, else `--json`, else a table.
    var output: OutputFormat {
        if let word = flagValues[Flag.output.name]?.last, let format = OutputFormat(rawValue: word) {
            return format
        }
        return isSet(.json) ? .json : .table
    }

    var printsJSON: Bool { output != .table }

    /// The absolute path of the data directory: `--data`, else `COUNTERSIGN_DATA`, else `countersign-data` in
    /// the platform's directory for application data.
    var dataDirectory: String {
        if let given = flagValues[Flag.data.name]?.last ?? io.variable("COUNTERSIGN_DATA") {
            return URL(fileURLWithPath: given).standardizedFileURL.path
        }
        #if os(macOS)
            let location = (io.environment["HOME"] ?? ".") + "/Library/Application Support"
        #else
            let home = (io.environment["HOME"] ?? ".") + "/.local/share"
            let location = io.environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? home
        #endif
        return URL(fileURLWithPath: location + "/countersign-data").standardizedFileURL.path
    }

    /// The database to use; nil for the data directory. Throws `usage` if flags name both or an address is invalid.
    func database() throws(CommandError) -> DatabaseAddress? {
        let given = flagValues[Flag.database.name]?.last
        if flagValues[Flag.data.name] != nil {
            guard given == nil else {
                throw CommandError(
                    .usage, "more than one gateway or data directory was given",
                    hint: "give --data or --database")
            }
            return nil
        }
        guard let text = try value(of: .database) else { return nil }
        let file = try value(of: .databasePasswordFile)
        let keyFile = try value(of: .tokenKeyFile) ?? DatabaseAddress.tokenKeyFile(in: dataDirectory)
        do throws(Setting.Problem) {
            var address = try Setting.database(text, passwordFile: file)
            address.tokenKeyFile = keyFile
            return address
        } catch {
            throw CommandError(.usage, "--database \(error.text)")
        }
    }

    /// Throws `notFound` for a database without data unless `makes` is set, and `conflict` for another
    /// version's schema, because a command must not migrate a database in use.
    func storageLocation(makingData makes: Bool = false) throws(CommandError) -> StorageLocation {
        guard let address = try database() else { return .folder(dataDirectory) }
        try checkSchema(of: address, making: makes)
        return .database(address)
    }

    /// Like ``storageLocation(makingData:)``. Also throws `notFound` for a folder without data unless `makes` is set.
    func locationWithData(makingData makes: Bool = false) throws(CommandError) -> StorageLocation {
        let location = try storageLocation(makingData: makes)
        // Without this check, a mistyped folder would look like one without apps.
        if case .folder(let directory) = location, !makes,
            !FileManager.default.fileExists(atPath: directory + "/control.sqlite")
        {
            throw CommandError(
                .notFound, "there is no data in \(directory)",
                hint: "create it with `countersign app create`, or name another folder with --data")
        }
        return location
    }

    /// Only `serve` and `migrate` upgrade an existing schema, because gateways of an older version may still run.
    func checkSchema(of address: DatabaseAddress, making makes: Bool = false) throws(CommandError) {
        let version = try Self.schemaVersion(of: address)
        guard version > 0 || makes else {
            throw CommandError(
                .notFound, "there is no data in the database \(address)",
                hint: "create it with `countersign app create`, or name another one with --database")
        }
        guard version == 0 || version == DatabaseSchema.newest else {
            throw CommandError(
                .conflict,
                "the database has schema \(version), and this program needs \(DatabaseSchema.newest)",
                hint:
                    "`countersign migrate` brings it up to date; gateways of the previous version keep working with it"
            )
        }
    }

    /// The version of the schema; 0 without one. Throws `unavailable` if the database does not respond.
    static func schemaVersion(of address: DatabaseAddress) throws(CommandError) -> Int {
        do throws(GatewayError) {
            return try DatabaseSchema.version(of: address)
        } catch {
            guard error.code == .storage else { throw CommandError(error) }
            throw CommandError(
                .unavailable, "the database \(address) cannot be reached: \(error.reason)",
                hint: "is it running, is this its address, and may this account sign in?")
        }
    }
}

extension StorageLocation {
    /// The oldest gateway that runs on the storage; nil without one. Throws `storage`.
    func runningGateway() throws -> RunningGateway? {
        switch self {
        case .folder(let path): return RunningGateway(dataDirectory: path)
        case .database:
            let gateways = try open().cluster?.status().gateways ?? []
            return gateways.lazy.filter(\.isLive).compactMap { gateway in
                gateway.url.map { RunningGateway(url: $0, adminURL: gateway.adminURL ?? $0) }
            }.first
        }
    }

    /// Like ``runningGateway()``. Throws `unavailable` without a running gateway.
    func requireRunningGateway() throws -> RunningGateway {
        guard let running = try runningGateway() else {
            throw CommandError(
                .unavailable, "no gateway is running on \(self)",
                hint: "start one with `countersign serve`, or give --server")
        }
        return running
    }
}
