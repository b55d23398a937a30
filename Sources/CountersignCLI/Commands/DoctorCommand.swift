internal import CountersignCore
internal import CountersignGateway
internal import Foundation

/// `countersign doctor`.
enum DoctorCommand {
    static let command = Command(
        "doctor", summary: "Look for what keeps the gateway from working, and say what to do",
        details: """
            The data directory's permissions, the disk, the databases, each app's keys and, when a gateway runs, whether it
            answers, can store, and has the right time. Exit 1 when something is broken; warnings are not.
            """,
        flags: [.url, .json, .data],
        examples: [.init("Is all well?", "countersign doctor")]
    ) { invocation in
        let data = try invocation.dataDirectory()
        let isGiven = try invocation.value(of: .url) != nil
        let url =
            isGiven
            ? try invocation.gatewayURL()
            : RunningGateway(dataDirectory: data).flatMap { URL(string: $0.url) }
        let floor = GatewayConfiguration(dataDirectory: data).diskFloorBytes
        let findings = await Doctor(dataDirectory: data, url: url, diskFloorBytes: floor).findings()
        if invocation.isSet(.json) {
            try invocation.io.print(
                .array(
                    findings.map { finding in
                        [
                            "check": .string(finding.name), "outcome": .string(finding.outcome.rawValue),
                            "detail": .string(finding.detail),
                            "remedy": finding.remedy.map { .string($0) } ?? .null,
                        ]
                    }))
        } else {
            for finding in findings {
                let mark =
                    switch finding.outcome {
                    case .ok: "ok  "
                    case .warning: "note"
                    case .failed: "FAIL"
                    }
                try invocation.io.print("\(mark)  \(finding.name): \(finding.detail)")
                if let remedy = finding.remedy { try invocation.io.print("      -> \(remedy)") }
            }
        }
        return findings.contains { $0.outcome == .failed } ? .failed : .done
    }
}
