internal import Foundation

/// Permissions and protection classes of a client's files. They are set whenever the queue is opened, because a new
/// file has the protection class of its directory and permissions by the process's umask.
enum FileProtection {
    /// Files that set their own protection class.
    private static func isException(_ name: String) -> Bool { name == "user.json" || name.hasPrefix("user-") }

    static func makeDirectory(_ directory: URL) throws {
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: attributes(0o700))
        #if canImport(Darwin)
            // Excluded from backups, because a restored queue would send its events again.
            var url = directory
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
        #endif
    }

    /// Failures are retried at the next call.
    static func apply(to directory: URL) {
        set(0o700, directory.path)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        for name in names where !isException(name) {
            let path = directory.appendingPathComponent(name).path
            if name == "tokens" {
                apply(to: URL(fileURLWithPath: path, isDirectory: true))
            } else {
                set(0o600, path)
            }
        }
    }

    private static func set(_ mode: Int, _ path: String) {
        try? FileManager.default.setAttributes(attributes(mode), ofItemAtPath: path)
    }

    private static func attributes(_ mode: Int) -> [FileAttributeKey: Any] {
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: mode]
        #if os(iOS)
            // Readable from the first unlock on, also in the background.
            attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        return attributes
    }
}
