internal import CountersignCore
internal import Foundation
internal import GatewayModel
internal import GatewayStorage

/// `countersign doctor`.
enum DoctorCommand {
    static let command = Command(
        "doctor", summary: "Look for what keeps the gateway from working, and say what to do",
        details: """
            The data directory and its files with their permissions, the disk, the databases, each app's keys, the settings
            as `serve` would read them with their certificate, and, when a gateway runs, whether it answers, can store, and
            has the right time; when none runs, whether its port is free. It works on the data directory only, never on a
            profile. Exit 1 when something is broken, 5 when there is no data directory; warnings do not affect the
            exit status.
            """,
        flags: [.url, .json, SettingReader.file, .data],
        examples: ["Check everything": "countersign doctor"]
    ) { invocation in
        let data = try invocation.dataDirectory()
        let isGiven = try invocation.value(of: .url) != nil
        let url =
            isGiven
            ? try invocation.gatewayURL()
            : RunningGateway(dataDirectory: data).flatMap { URL(string: $0.url) }
        var configuration = GatewayConfiguration(dataDirectory: data)
        var settingsProblem: CommandError?
        do throws(CommandError) {
            configuration = try SettingReader(invocation: invocation).configuration()
        } catch {
            settingsProblem = error
        }
        var doctor = Doctor(configuration: configuration, url: url)
        doctor.settingsProblem = settingsProblem
        doctor.profileNote = try invocation.onlyHere()
        let findings = await doctor.findings()
        try report(findings, invocation)
    }

    /// Prints findings. Throws how the command ends when one of them failed.
    static func report(_ findings: [Doctor.Finding], _ invocation: Invocation) throws {
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
                let mark =
                    switch finding.outcome {
                    case .ok: invocation.io.colored("ok  ", .good)
                    case .warning: invocation.io.colored("note", .doubtful)
                    case .failed: invocation.io.colored("FAIL", .bad)
                    }
                try invocation.io.print("\(mark)  \(finding.name): \(finding.detail)")
                if let remedy = finding.remedy { try invocation.io.print("      -> \(remedy)") }
            }
        }
        if let failed = findings.first(where: { $0.outcome == .failed }) { throw failed.code }
    }
}
