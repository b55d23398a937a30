internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

enum DoctorCommand {
    static let command = Command(
        "doctor", summary: "Find problems with the gateway and print how to fix them",
        details: """
            For a data directory: the folder and its files with their permissions, the disk, the databases, the settings and
            certificate that `serve` would use, and whether a running gateway answers, can store events and has the right
            time; if none runs, whether its port is free. For a database: its schema, its gateways and their warnings. For a
            remote gateway (--server, --profile): whether it answers and can store events, its version, its clock and its
            warnings. For all of them: each app's keys, webhooks, streams and consumers. Nothing is changed. `countersign
            self-check` checks from the clients' side and needs no token. Exit 1 if something is broken, 5 if there is no
            data directory, 7 if a gateway does not answer; notes do not affect the exit status.
            """,
        flags: [.json, SettingReader.file] + Flag.target,
        examples: ["Check everything": "countersign doctor"]
    ) { invocation in
        try report(try await findings(invocation), invocation)
    }

    private static func findings(_ invocation: Invocation) async throws -> [Finding] {
        let remote = try invocation.remoteAdmin()
        let address = remote == nil ? try invocation.database() : nil
        guard remote == nil, address == nil else {
            guard !invocation.isSet(SettingReader.file) else {
                throw CommandError(
                    .usage, "--config is for a data directory",
                    hint: "a remote gateway and the gateways of a database have their own settings")
            }
            if let remote { return await AdminDoctor(admin: remote).gateway() }
            do {
                return await AdminDoctor(admin: try invocation.admin()).database()
            } catch let error as CommandError {
                return [.failed("database", error.reason, error.hint, code: error.code)]
            }
        }
        let data = invocation.dataDirectory
        var configuration = GatewayConfiguration(dataDirectory: data)
        var settingsProblem: CommandError?
        do throws(CommandError) {
            configuration = try SettingReader(invocation: invocation).configuration()
        } catch {
            settingsProblem = error
        }
        var doctor = Doctor(
            configuration: configuration,
            url: RunningGateway(dataDirectory: data).flatMap { URL(string: $0.url) })
        doctor.transport = try SystemTransport.trusting(invocation.value(of: .certificateAuthorityFile))
        doctor.settingsProblem = settingsProblem
        return await doctor.findings()
    }

    /// Prints findings. Throws the exit code if any check failed.
    static func report(_ findings: [Finding], _ invocation: Invocation) throws {
        if invocation.printsJSON {
            try invocation.printList(
                findings.map { finding in
                    [
                        "check": .string(finding.name), "outcome": .string(finding.outcome.rawValue),
                        "detail": .string(finding.detail),
                        "remedy": finding.remedy.map { .string($0) } ?? .null,
                    ]
                }, [:], empty: "")
        } else {
            for finding in findings {
                let word =
                    switch finding.outcome {
                    case .ok: invocation.io.colored("ok  ", .good)
                    case .warning: invocation.io.colored("note", .doubtful)
                    case .failed: invocation.io.colored("FAIL", .bad)
                    }
                try invocation.io.print("\(word)  \(finding.name): \(finding.detail)")
                if let remedy = finding.remedy { try invocation.io.print("      -> \(remedy)") }
            }
        }
        if let failed = findings.first(where: { $0.outcome == .failed }) { throw failed.code }
    }
}
