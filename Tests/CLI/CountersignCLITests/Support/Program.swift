import Foundation

/// The built program, in the folder of the test bundle.
enum Program {
    static let path: String = {
        #if os(macOS)
            let folder = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }.map { bundle in
                URL(fileURLWithPath: bundle.bundlePath).deletingLastPathComponent().path
            }
            return (folder ?? ".") + "/countersign-cli"
        #else
            let folder = URL(fileURLWithPath: Bundle.main.executablePath ?? ".").deletingLastPathComponent()
                .path
            return folder + "/countersign-cli"
        #endif
    }()
}
