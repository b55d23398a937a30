import Foundation

/// Real input from a folder next to the checkout, if the folder exists.
enum SharedData {
    static func path(_ name: String, from file: String = #filePath) -> String {
        // Tests/CLI/CountersignCLITests/Support/SharedData.swift is five levels below the package.
        var package = URL(fileURLWithPath: file)
        for _ in 0..<5 { package.deleteLastPathComponent() }
        return package.deletingLastPathComponent().appendingPathComponent("shared/data/\(name)").path
    }

    static func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: path(name))
    }
}
