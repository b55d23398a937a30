package import Foundation

/// Copies the folder of a running client. The copy begins again if it fails because the client has renamed a file.
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
