/// How often a running gateway backs up its data directory.
public struct BackupRules: Sendable {
    /// Hours between two backups; 0 disables backups.
    public var hours = 0
    /// The number of backups to retain.
    public var keep = 7
    /// The folder of the backups; nil means `backups` in the data directory.
    public var folder: String?
}
