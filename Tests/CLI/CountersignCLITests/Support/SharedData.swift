import Foundation

/// Real input from a folder next to the checkout, if the folder exists.
enum SharedData {
    static func path(_ name: String) -> String {
        Package.folder.deletingLastPathComponent().appendingPathComponent("shared/data/\(name)").path
    }

    static func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: path(name))
    }
}
