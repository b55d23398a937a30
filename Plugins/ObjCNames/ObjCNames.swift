import Foundation
import PackagePlugin

/// Lets samples that name a class with `@objc(…)` be compiled where there is no Objective-C: the files in a target's folder
/// `Documented` are compiled as they are on Apple platforms, and without that line elsewhere.
@main
struct ObjCNames: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let folder = target.directoryURL.appending(path: "Documented")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
            $0.hasSuffix(".swift")
        }
        #if canImport(ObjectiveC)
            let script = "cp \"$0\" \"$1\""
        #else
            let script = "sed 's/^@objc(.*)$//' \"$0\" > \"$1\""
        #endif
        return names.map { name in
            let input = folder.appending(path: name)
            let output = context.pluginWorkDirectoryURL.appending(path: name)
            return .buildCommand(
                displayName: "Preparing \(name)", executable: URL(filePath: "/bin/sh"),
                arguments: ["-c", script, input.path, output.path], inputFiles: [input], outputFiles: [output]
            )
        }
    }
}
