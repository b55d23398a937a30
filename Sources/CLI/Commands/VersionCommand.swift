internal import CountersignCore

enum VersionCommand {
    static let version = countersignVersion

    static let command = Command(
        "version", summary: "Print the version", flags: [.json],
        examples: ["Which version is this?": "countersign version"]
    ) { invocation in
        try invocation.print(["version": .string(version)]) {
            try invocation.io.print("countersign \(version)")
        }
    }
}
