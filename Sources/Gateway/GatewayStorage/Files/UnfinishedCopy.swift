internal import CountersignCore
internal import Foundation
package import GatewayModel

/// The marker of an unfinished copy, which prevents other use of the target.
package enum UnfinishedCopy {
    /// The table with the last copied event. It is dropped when the copy is complete.
    package static let table = "unfinished_copy"

    private static let file = "unfinished-copy"
    /// Exists in a data directory during a restore.
    static let restoreFile = "unfinished-restore"

    package static let rejection = GatewayError(
        .conflict, "a copy to this target is not finished; copy from the same source again to finish it")

    static func path(in folder: String) -> String { folder + "/" + file }

    /// Throws ``rejection`` for an unfinished copy, and `conflict` for an unfinished restore.
    package static func check(_ folder: String) throws(GatewayError) {
        if FileManager.default.fileExists(atPath: path(in: folder)) { throw rejection }
        guard !FileManager.default.fileExists(atPath: folder + "/" + restoreFile) else {
            throw GatewayError(
                .conflict,
                "a backup was not restored into \(folder) completely; restore it again to finish it")
        }
    }
}
