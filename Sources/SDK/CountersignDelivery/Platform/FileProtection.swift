internal import Foundation

/// Permissions and protection classes of a client's files. They are set whenever the queue is opened, because new files
/// inherit the attributes of their directory, which may have been created with other attributes.
enum FileProtection {
    /// Files that set their own protection class.
    private static func isException(_ name: String) -> Bool { name == "user.json" || name.hasPrefix("user-") }

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
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: mode]
        #if os(iOS)
            // Readable from the first unlock on, also in the background.
            attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        try? FileManager.default.setAttributes(attributes, ofItemAtPath: path)
    }
}
