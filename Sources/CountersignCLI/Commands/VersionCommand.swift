/// `countersign version`.
enum VersionCommand {
    /// What this build is called.
    static let version = "0.1.0"

    static let command = Command(
        "version", summary: "Print the version",
        examples: [.init("Which version is this?", "countersign version")]
    ) { invocation in
        try invocation.io.print("countersign \(version)")
        return .done
    }
}
