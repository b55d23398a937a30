package import Foundation

/// Copies the folder of a client that still runs. The client replaces files by renaming others, and a copy
/// fails if such a file is gone. The copy then begins again.
package func copyRunning(_ source: URL, to target: URL) throws {
    while true {
        do {
            return try FileManager.default.copyItem(at: source, to: target)
        } catch let error as CocoaError
            where [.fileNoSuchFile, .fileReadNoSuchFile].contains(error.code)
            && FileManager.default.fileExists(atPath: target.path)
        {
            try FileManager.default.removeItem(at: target)
        }
    }
}
