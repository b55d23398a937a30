internal import Foundation
internal import GatewayStorage

/// A data directory's `control.sqlite` as every version up to now has made it, once for all gateways of a process: the
/// steps from the first version to this one cost more than most tests do otherwise.
enum FolderTemplate {
    private static let file = Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "countersign-template-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        _ = try AppDirectory(dataDirectory: folder.path)
        return try Data(contentsOf: folder.appendingPathComponent(name))
    }
    private static let name = "control.sqlite"

    /// Makes the folder, with the file in it. Throws `GatewayError`, or Foundation's errors when it cannot be written.
    static func copy(to folder: URL) throws {
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try file.get().write(to: folder.appendingPathComponent(name))
    }
}
