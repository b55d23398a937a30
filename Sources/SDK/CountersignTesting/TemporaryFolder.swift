package import Foundation

/// A place for a test's files, deleted with this object. Whoever writes there first makes the folder.
package final class TemporaryFolder: Sendable {
    package let url = FileManager.default.temporaryDirectory.appendingPathComponent(
        "countersign-\(UUID().uuidString)")

    package var path: String { url.path }

    package init() {}

    deinit {
        try? FileManager.default.removeItem(at: url)
    }
}
