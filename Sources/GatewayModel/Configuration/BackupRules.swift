/// How often a running gateway makes a backup of its data directory.
public struct BackupRules: Sendable {
    /// Hours between two; 0 makes none.
    public var hours = 0
    /// How many are kept.
    public var keep = 7
    /// Where they go; nil is the folder `backups` in the data directory.
    public var folder: String?
}
