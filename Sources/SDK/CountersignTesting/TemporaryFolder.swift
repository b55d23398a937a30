package import Foundation

/// The URL of a folder for a test's files. Not created here; deleted when this object is deallocated.
package final class TemporaryFolder: Sendable {
    package let url = FileManager.default.temporaryDirectory.appendingPathComponent(
        "countersign-\(UUID().uuidString)")

    package var path: String { url.path }

    package init() {}

    deinit {
        try? FileManager.default.removeItem(at: url)
    }
}
