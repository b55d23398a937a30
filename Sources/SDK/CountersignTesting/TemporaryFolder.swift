package import Foundation

/// The URL of a folder for a test's files. The object does not create the folder, but deletes it when deallocated.
package final class TemporaryFolder: Sendable {
    package let url = FileManager.default.temporaryDirectory.appendingPathComponent(
        "countersign-\(UUID().uuidString)")

    package var path: String { url.path }

    package init() {}

    deinit {
        try? FileManager.default.removeItem(at: url)
    }
}
