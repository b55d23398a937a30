internal import Foundation

/// Who may read the files of a client, and when.
///
/// A directory's attributes are those that it was made with, whoever made it, and each file takes over the directory's. So
/// they are set again whenever the queue is opened.
enum FileProtection {
    /// Files that say themselves when they can be read.
    private static func isException(_ name: String) -> Bool { name == "user.json" || name.hasPrefix("user-") }

    /// Sets the attributes of the directory and of all files in it. What cannot be set now is set the next time.
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
            // In the background too, from the first unlock on.
            attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        try? FileManager.default.setAttributes(attributes, ofItemAtPath: path)
    }
}
