internal import Foundation

enum QueueDirectory {
    static func make(_ directory: URL) throws {
        var attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
        #if os(iOS)
            // Readable in the background after the first unlock; SQLite's files inherit it.
            attributes[.protectionKey] = FileProtectionType.completeUntilFirstUserAuthentication
        #endif
        try FileManager.default.createDirectory(
            at: directory, withIntermediateDirectories: true, attributes: attributes)
        #if canImport(Darwin)
            // Excluded from backups, because a restored queue would send its events again.
            var url = directory
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            try url.setResourceValues(values)
        #endif
    }
}
